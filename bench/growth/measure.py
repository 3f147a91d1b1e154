"""Runs brisk and reads what it measured: a shape through `brisk bench lm`, a corpus through `brisk train`."""
import json
import os
import shutil
import subprocess
import time

CORPUS_STEPS = 10
CORPUS_JOB = {"model": {"d_model": 64, "num_layers": 1, "vocab_size": 4096},
              "training": {"max_length": 128, "batch_size": 16, "max_steps": CORPUS_STEPS, "logging_steps": CORPUS_STEPS,
                           "eval_steps": 10**9, "save_steps": 10**9, "save_minutes": 0, "load_best_model_at_end": False}}


def run(command, log):
    """Runs a command and returns its output and the most anonymous memory it held, looked at every 5 ms."""
    own = 0
    with open(log, "w") as error, open(log + ".out", "w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=error)
        while process.poll() is None:
            own = max(own, anonymous_bytes(process.pid))
            time.sleep(0.005)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        with open(log) as file:
            tail = file.read().strip().splitlines()[-5:]
        raise RuntimeError("\n".join([" ".join(command), f"failed with {process.returncode}:"] + tail))
    return text, own


def anonymous_bytes(process_id):
    try:
        with open(f"/proc/{process_id}/status") as file:
            return next((1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon:")), 0)
    except OSError:  # it has just ended
        return 0


class Brisk:
    def __init__(self, program, scratch, threads):
        self.program, self.scratch, self.threads = program, scratch, threads

    def path(self, name):
        return os.path.join(self.scratch, name)

    def machine(self):
        text, _ = run([self.program, "machine", "--json"], self.path("machine.log"))
        return json.loads(text)

    def shape(self, setting, tokens, seconds, precision):
        """One point: a step of `tokens` tokens in sequences of the setting's length."""
        command = [self.program, "bench", "lm", "--width", setting["width"], "--layers", setting["layers"], "--vocabulary",
                   setting["vocabulary"], "--max-length", setting["length"], "--batch", tokens // setting["length"], "--threads",
                   setting["cores"], "--precision", precision, "--seconds", seconds, "--json"]
        text, _ = run([str(word) for word in command], self.path("bench.log"))
        return json.loads(text)

    def corpus(self, text, validation, precision):
        """Three starts of one job: nothing there; only the vocabulary; vocabulary and tokens."""
        job = json.loads(json.dumps(CORPUS_JOB))
        job["training"].update(threads=self.threads, precision=precision)
        job["data"] = {"train": [text], "validation": [validation], "document": "block", "cache_dir": self.path("cache")}
        with open(self.path("job.json"), "w") as file:
            json.dump(job, file)
        self.forget("cache")
        result = {"bytes": os.path.getsize(text), "vocabulary": self.start()}
        shutil.copy(self.path("run/tokenizer.json"), self.path("tokenizer.json"))
        self.forget("cache")
        given = ["--set", "data.tokenizer=" + self.path("tokenizer.json")]
        result["tokens"] = self.start(*given)
        result["cache_bytes"] = sum(os.path.getsize(self.path("cache/" + name)) for name in os.listdir(self.path("cache")))
        result["again"] = self.start(*given)
        return result

    def start(self, *settings):
        self.forget("run")
        _, own = run([self.program, "train", self.path("job.json"), "--output", self.path("run"), *settings], self.path("train.log"))
        with open(self.path("run/summary.json")) as file:
            summary = json.load(file)
        ledger = summary["ledger"]
        aside = sum(ledger[phase] for phase in ("start_up", "evaluation", "checkpoint"))
        return {"start_seconds": ledger["start_up"], "train_seconds": summary["wall_seconds"] - aside,
                "peak_memory_bytes": summary["peak_memory_bytes"], "anonymous_bytes": own}

    def forget(self, name):
        shutil.rmtree(self.path(name), ignore_errors=True)
