"""Runs of brisk for the studies of MU, each skipped where its result is there already.

    runs = Runs(brisk, folder)
    result = runs.train("mu-seed-1", job)       # a dictionary of what docs/mu.md needs, also in folder/mu-seed-1.json
"""
import json
import math
import os
import subprocess
import sys
import time


def read_json(path):
    with open(path) as file:
        return json.load(file)


def write_json(path, value):
    with open(path + ".partial", "w") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".partial", path)


def json_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def text_file(folder, part):
    names = [os.path.join(folder, part + suffix) for suffix in (".txt", ".txt.gz")]
    found = [name for name in names if os.path.exists(name)]
    if not found:
        raise SystemExit(f"{names[0]}: there is none, nor {part}.txt.gz; --data names the folder of train.txt and valid.txt")
    return os.path.abspath(found[0])


def between(points, step):
    """Tokens and seconds after a step that may lie between two of the points."""
    after = next((index for index, point in enumerate(points) if point[0] >= step), len(points) - 1)
    (begin, *low), (end, *high) = points[max(0, after - 1)], points[after]
    share = (step - begin) / (end - begin) if end > begin else 1
    return [a + share * (b - a) for a, b in zip(low, high)]


class Runs:
    def __init__(self, brisk, folder):
        self.brisk, self.folder = brisk, os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, name, job):
        """One training, or its result where it ran before with the same job; one that was interrupted goes on."""
        result, known = self.path(name + ".json"), self.path(name + ".job.json")
        job = {**job, "name": name, "output": self.path(name)}
        if os.path.exists(known) and read_json(known) != job:
            sys.exit(f"{known}: ran with other settings; use another --output, or remove that folder's {name}*")
        if os.path.exists(result):
            return read_json(result)
        write_json(known, job)
        command = [self.brisk, "train", known] + (["--resume"] if os.path.exists(self.path(name + "/job.json")) else [])
        start = time.time()
        with open(self.path(name + ".log"), "a") as log:
            code = subprocess.run(command, stdout=log, stderr=log).returncode
        if code != 0:
            tail = "".join(open(self.path(name + ".log")).readlines()[-5:])
            sys.exit(f"{' '.join(command)}\nfailed with {code}:\n{tail}")
        outcome = self.read(name)
        outcome["process_seconds"] = time.time() - start
        write_json(result, outcome)
        subprocess.run(["rm", "-rf", self.path(name + "/checkpoints")], check=True)
        return outcome

    def read(self, name):
        summary = read_json(self.path(name + "/summary.json"))
        ledger = summary["ledger"]
        seconds = summary["wall_seconds"] - sum(ledger[phase] for phase in ("start_up", "evaluation", "checkpoint"))
        lines = json_lines(self.path(name + "/metrics.jsonl"))
        at = [(0, 0, 0.0)]  # steps, their tokens and their seconds, every few of them
        for line in lines:
            if "loss" in line:
                at.append((line["step"], line["tokens"], at[-1][2] + (line["step"] - at[-1][0]) * line["step_ms"] / 1e3))
        course = []
        for line in lines:
            if "validation_loss" in line:
                tokens, spent = between(at, line["step"])
                course.append({"step": line["step"], "tokens": tokens, "seconds": spent,
                               "validation_loss": line["validation_loss"], "validation_accuracy": line["validation_accuracy"]})
        epochs = [line for line in json_lines(self.path(name + "/ledger.jsonl")) if line["kind"] == "epoch"]
        return {"parameters": summary["parameters"], "tokens": summary["tokens"], "steps": summary["step"], "train_seconds": seconds,
                "tokens_per_second": summary["tokens"] / seconds, "validation_loss": course[-1]["validation_loss"] if course else math.nan,
                "validation_accuracy": course[-1]["validation_accuracy"] if course else math.nan,
                "wall_seconds": summary["wall_seconds"], "precision": summary["precision"], "device": summary.get("device", "cpu"),
                "threads": summary["threads"], "course": course, "epochs": epochs}
