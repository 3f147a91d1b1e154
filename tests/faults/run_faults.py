#!/usr/bin/env python3
"""Does brisk go on under faults? Commands: faults, kills, interrupt, soak, large_corpus, quick (docs/testing.md).

  tests/faults/run_faults.py faults --build build                  # every write, fsync, ... of a run fails once
  tests/faults/run_faults.py kills --build build --kills 1000      # kill -9 at random moments
  tests/faults/run_faults.py soak --build build --minutes 60       # memory and speed over an hour
  tests/faults/run_faults.py large_corpus --build build            # ten times the memory it is given

The exit code is 1 where anything was found. Needs Python 3 and nothing else.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

KINDS = ["write", "fsync", "rename", "mmap", "open", "ftruncate", "mkdir", "unlink", "close", "read", "open_read",
         "thread", "large", "small", "say"]  # as in preload.cpp
ERRORS = {
    "write": ["ENOSPC", "EIO", "EINTR", "short", "full", "kill"],
    "fsync": ["EIO", "ENOSPC", "kill"],
    "rename": ["ENOSPC", "EIO", "kill"],
    "mmap": ["ENOMEM", "EIO"],
    "open": ["ENOSPC", "EIO", "EMFILE", "full"],
    "ftruncate": ["EIO", "kill"],
    "mkdir": ["ENOSPC", "EIO", "kill"],
    "unlink": ["EIO", "kill"],
    "close": ["EIO", "ENOSPC"],
    "read": ["EIO", "EINTR", "short"],
    "open_read": ["EIO", "EMFILE"],
    "thread": ["EAGAIN"],
    "large": ["ENOMEM"],
    "small": ["ENOMEM"],
    "say": ["EIO", "EINTR", "short"],
}
# A call that was cut short or interrupted is simply made again: nobody may notice. Nor that nobody reads messages.
HARMLESS = {("write", "EINTR"), ("write", "short"), ("read", "EINTR"), ("read", "short"), ("say", "EIO"),
            ("say", "EINTR"), ("say", "short")}
SECONDS = 60  # longer is a hang

# Of a line of metrics.jsonl: what the clock decides.
CLOCK = {"tokens_per_second", "step_ms", "seconds", "utilisation"}


def words(lines, seed=1):
    """Sentences, one to three a line; the same for the same arguments everywhere."""
    who = ["farmer", "teacher", "river", "child", "old man", "queen", "dog", "sailor", "doctor", "garden", "horse"]
    does = ["finds", "follows", "carries", "remembers", "watches", "leaves", "answers", "forgets"]
    where = ["in the morning", "near the water", "before the rain", "under the bridge", "at the market"]
    draw = random.Random(seed)
    out = []
    for _ in range(lines):
        out.append(" ".join("The %s %s the %s %s." % (draw.choice(who), draw.choice(does), draw.choice(who),
                                                      draw.choice(where)) for _ in range(draw.randint(1, 3))))
    return "\n".join(out) + "\n"


def decoder_job(steps=8, **training):
    return {"model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 320, "dropout": 0.1},
            "training": {"max_length": 32, "batch_size": 8, "max_steps": steps, "learning_rate": 3e-3,
                         "precision": "fp32", "threads": 1, "logging_steps": 1, "eval_steps": 4, "save_steps": 3,
                         "save_total_limit": 1, "sample_tokens": 4, "histogram_steps": 4, **training},
            "data": {"train": ["text.txt"], "document": "line"}}


def llama_job():
    job = decoder_job(steps=4)
    job["model"]["type"] = "llama"
    job["model"]["vocab_size"] = 400
    del job["model"]["dropout"]
    return job


def classifier_job(steps=8, **training):
    return {"task": "classify", "model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 320},
            "training": {"max_length": 32, "batch_size": 8, "max_steps": steps, "precision": "fp32", "threads": 2,
                         "logging_steps": 1, "eval_steps": 4, "save_steps": 3, "save_total_limit": 1, **training},
            "data": {"train": ["table.csv"]}}


def mlm_job(steps=8, **training):
    job = classifier_job(steps, **training)
    job["task"] = "mlm"
    job["data"] = {"train": ["text.txt"]}
    return job


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_inputs(folder):
    write(folder + "/text.txt", words(60))
    rows = ["text,label"]
    for i, line in enumerate(words(80, 2).splitlines()):
        rows.append('"%s",%s' % (line, "warm" if "river" in line or i % 7 == 0 else "cold"))
    write(folder + "/table.csv", "\n".join(rows) + "\n")


class Outcome:
    def __init__(self, code, out, err, seconds, hung):
        self.code, self.out, self.err, self.seconds, self.hung = code, out, err, seconds, hung


class Fault:
    """One call of one kind that fails, by its number from 1."""

    def __init__(self, kind, at, error):
        self.kind, self.at, self.error = kind, at, error

    def __str__(self):
        return "%s %d %s" % (self.kind, self.at, self.error)


class Report:
    """What the preloaded library wrote: the calls it counted, and where the one that failed came from."""

    def __init__(self, path):
        data = read(path) if os.path.exists(path) else b""
        data = data.ljust(8 * 57 + 512, b"\0")
        self.counts = dict(zip(KINDS, struct.unpack_from("<16Q", data)))
        self.injected = struct.unpack_from("<Q", data, 128)[0] == 1
        self.frames = [frame for frame in struct.unpack_from("<40Q", data, 136) if frame]
        self.what = data[136 + 320:136 + 320 + 512].split(b"\0")[0].decode("utf-8", "replace")


class Bench:
    """The program, the library that makes its calls fail, and how to start one with the other."""

    def __init__(self, arguments):
        self.brisk = os.path.abspath(arguments.brisk or arguments.build + "/brisk")
        self.preload = os.path.abspath(arguments.preload or arguments.build + "/tests/faults/libfault.so")
        for path in (self.brisk, self.preload):
            if not os.path.exists(path):
                sys.exit("%s: there is none; build brisk with the tests, or name it with --brisk, --preload" % path)

    def environment(self, folder):
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "BRISK_ISA") if key in os.environ}
        return {**kept, "XDG_CACHE_HOME": folder + "/cache", "TERM": "dumb", "LC_ALL": "C"}

    def start(self, arguments, folder, environment=None):
        return subprocess.Popen([self.brisk] + arguments, cwd=folder, env=environment or self.environment(folder),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, arguments, folder, fault=None, count=False):
        """With a fault, or where calls shall be counted, an Outcome and a Report; otherwise the Outcome alone."""
        environment = self.environment(folder)
        report = folder + ".report"
        if fault or count:
            if os.path.exists(report):
                os.remove(report)
            environment.update({"LD_PRELOAD": self.preload, "BRISK_FAULT_REPORT": report})
        if fault:
            environment.update({"BRISK_FAULT_KIND": fault.kind, "BRISK_FAULT_AT": str(fault.at),
                                "BRISK_FAULT_ERROR": fault.error})
        begin = time.monotonic()
        process = self.start(arguments, folder, environment)
        hung = False
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            hung = True
            process.kill()
            out, err = process.communicate()
        outcome = Outcome(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"),
                          time.monotonic() - begin, hung)
        return (outcome, Report(report)) if fault or count else outcome

    def must(self, arguments, folder):
        outcome = self.run(arguments, folder)
        if outcome.code != 0:
            sys.exit("brisk %s: exit code %s without any fault:\n%s" % (" ".join(arguments), outcome.code, outcome.err))
        return outcome

    def where(self, report):
        """The functions of the program that the failing call came from."""
        if not report.frames or not shutil.which("addr2line"):
            return ""
        found = subprocess.run(["addr2line", "-f", "-C", "-e", self.brisk] + ["%#x" % (f - 1) for f in report.frames],
                               capture_output=True, text=True).stdout.splitlines()[::2]
        names = [re.sub(r"\(.*", "", name).replace("brisk::", "") for name in found if name != "??"]
        return " < ".join(names[:8])


def files_below(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = path
    return found


def curve(run):
    lines = []
    for line in read(run + "/metrics.jsonl").decode().splitlines():
        lines.append({key: value for key, value in json.loads(line).items() if key not in CLOCK})
    return lines


def checkpoints(run):
    folder = run + "/checkpoints"
    return sorted(name for name in os.listdir(folder) if name[0] != ".") if os.path.isdir(folder) else []


def is_left_over(path):
    """Of a file that was not finished, or a checkpoint that was half written or half removed."""
    return any(part in path for part in (".partial", ".deleted", ".replaced"))


def state_of_run(run):
    """All of a finished run that must not depend on what happened on the way."""
    last = checkpoints(run)[-1]
    summary = json.loads(read(run + "/summary.json"))
    best = dict(summary.get("best") or {})
    best.pop("seconds", None)
    names = sorted(name for name in files_below(run)
                   if not name.startswith(("tensorboard/", "checkpoints/")) and not name.endswith(".lock"))
    return {"curve": curve(run), "last checkpoint": last, "files": names,
            "left over": sorted(name for name in files_below(run) if is_left_over(name)),
            "checkpoints": checkpoints(run),
            "weights": hashlib.sha256(read(run + "/checkpoints/" + last + "/model.safetensors")).hexdigest(),
            "optimizer": hashlib.sha256(read(run + "/checkpoints/" + last + "/optimizer.safetensors")).hexdigest(),
            "tokenizer": hashlib.sha256(read(run + "/tokenizer.json")).hexdigest(),
            "best": best, "ended": summary["ended"], "step": summary["step"], "loss": summary["loss"]}


def difference(found, expected, removal_failed=False):
    """The first thing in which two states differ, or an empty text."""
    for key, value in expected.items():
        # What could not be removed, and was told, or what a kill left just before it would have been, may be there.
        if removal_failed and key in ("checkpoints", "left over"):
            continue
        if found[key] == value:
            continue
        if key == "curve":
            for i, (mine, theirs) in enumerate(zip(found[key], value)):
                if mine != theirs:
                    return "metrics.jsonl, line %d: %s where the undisturbed run has %s" % (i + 1, mine, theirs)
            return "metrics.jsonl has %d lines, expected %d" % (len(found[key]), len(value))
        return "%s: %s, expected %s" % (key, found[key], value)
    return ""


def damaged_files(run, may_leave):
    """Every file of a run that is there is whole: read by nothing of brisk's. `may_leave` says which need not be gone."""
    problems = []
    for name, path in sorted(files_below(run).items()):
        data = read(path)
        if is_left_over(name):
            if not may_leave(name):
                problems.append(name + " was left behind")
        elif name.endswith(".json") and data.strip() == b"":
            problems.append(name + " is empty")
        elif name.endswith(".json"):
            try:
                json.loads(data)
            except ValueError as error:
                problems.append("%s: %s" % (name, error))
        elif name.endswith(".jsonl") and not may_leave(name):
            for line in data.splitlines(True):
                try:
                    json.loads(line)
                    assert line.endswith(b"\n")
                except (ValueError, AssertionError):
                    problems.append("%s has a damaged line: %r" % (name, line[:80]))
        elif name.endswith(".safetensors"):
            size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
            try:
                header = json.loads(data[8:8 + size])
                end = max([entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"] or [0])
                if 8 + size + end != len(data):
                    problems.append("%s has %d bytes, its header says %d" % (name, len(data), 8 + size + end))
            except ValueError as error:
                problems.append("%s: %s" % (name, error))
    for name in checkpoints(run):
        there = os.listdir(run + "/checkpoints/" + name)
        if not is_left_over(name) and "state.json" not in there:
            problems.append("checkpoint %s has no state.json" % name)
    return problems


class Scenario:
    """A command that is disturbed, how to do it again afterwards, and what must then be there."""

    def __init__(self, name, bench, base):
        self.name, self.bench, self.base = name, bench, base
        self.prepare()

    def prepare(self):
        pass

    def set_up(self, folder):
        shutil.copytree(self.base, folder, symlinks=True)

    def again(self, folder):
        return self.command

    def damage(self, folder, may_leave):
        return []

    def result(self, folder):
        raise NotImplementedError

    def is_complete(self, folder):
        return False

    def expect(self):
        folder = self.base + ".expect-" + self.name
        self.set_up(folder)
        self.bench.must(self.command, folder)
        self.expected = self.result(folder)
        shutil.rmtree(folder)

    def problem_with(self, folder, removal_failed=False):
        try:
            return difference(self.result(folder), self.expected, removal_failed)
        except (OSError, ValueError, KeyError, IndexError) as error:
            return "cannot read the result: %s: %s" % (type(error).__name__, error)


class Train(Scenario):
    """From nothing: tokenizer, tokens, checkpoints in the background, evaluations, samples, TensorBoard."""

    def __init__(self, name, bench, base, job):
        self.job = job
        super().__init__(name, bench, base)

    def prepare(self):
        write(self.base + "/%s.json" % self.name, json.dumps(self.job, indent=1))
        self.command = ["train", self.name + ".json", "--output", "run"]
        self.expect()

    def again(self, folder):
        there = os.path.exists(folder + "/run/job.json")
        return ["train", "run", "--resume"] if there else self.command

    def damage(self, folder, may_leave):
        before = files_below(self.base + "/run")
        return damaged_files(folder + "/run", lambda name: may_leave(name) or name in before)

    def result(self, folder):
        state = state_of_run(folder + "/run")
        state["left over of the cache"] = [name for name in files_below(folder + "/cache") if is_left_over(name)]
        return state


class Resume(Train):
    """A run that was killed after a checkpoint, and goes on."""

    def prepare(self):
        super().prepare()
        self.killed = self.base + ".killed-" + self.name
        for at in range(1, 1000):  # at the first write of steps that happens after a checkpoint was made
            shutil.copytree(self.base, self.killed)
            self.bench.run(self.command, self.killed, Fault("write", 8 * at, "kill"))
            whole = [name for name in checkpoints(self.killed + "/run") if not is_left_over(name)]
            if whole and any("loss" in line and line["step"] > 4 for line in whole_lines(self.killed + "/run")):
                break
            shutil.rmtree(self.killed)
        else:
            sys.exit("no run was killed between two checkpoints")
        self.base = self.killed
        self.command = ["train", "run", "--resume"]


def whole_lines(run):
    path = run + "/metrics.jsonl"
    text = read(path).decode() if os.path.exists(path) else ""
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


class Files(Scenario):
    """A command whose result is a folder, or a file, that is the same in every byte whenever it is made."""

    def __init__(self, name, bench, base, command, output, tidy=None):
        self.command, self.output, self.tidy = command, output, tidy
        super().__init__(name, bench, base)

    def prepare(self):
        self.expect()

    def files(self, folder):
        path = folder + "/" + self.output
        found = files_below(path) if os.path.isdir(path) else {self.output: path} if os.path.exists(path) else {}
        return {name: self.tidied(where, folder) for name, where in found.items() if not name.endswith(".lock")}

    def tidied(self, where, folder):
        data = read(where).replace(folder.encode(), b"@")
        return self.tidy(data) if self.tidy else data

    def result(self, folder):
        return self.files(folder)

    def is_complete(self, folder):
        return not self.problem_with(folder)

    def damage(self, folder, may_leave):
        problems = []
        before = files_below(self.base)
        for name, where in sorted(files_below(folder).items()):
            inner = os.path.relpath(where, folder + "/" + self.output) if name != self.output else name
            if is_left_over(name):
                if not may_leave(name):
                    problems.append(name + " was left behind")
            elif inner in self.expected:
                if self.tidied(where, folder) != self.expected[inner] and (
                        name not in before or read(where) != read(before[name])):
                    problems.append(name + " is there and damaged")
            elif name.endswith(".lock"):
                continue
            elif name not in before:
                problems.append(name + ": what is this?")
            elif read(where) != read(before[name]):
                problems.append(name + " was changed")
        return problems

    def problem_with(self, folder, removal_failed=False):
        found = self.result(folder)
        for name in sorted(set(found) | set(self.expected)):
            if found.get(name) != self.expected.get(name):
                return "%s is %s" % (name, "missing" if name not in found else
                                     "not expected" if name not in self.expected else "not what it should be")
        return ""


def without_clock(page):
    return re.sub(rb"generated[^<]*", b"", page)


def scenarios(bench, base, names):
    """Those asked for, each with what it stands on."""
    write_inputs(base)
    made = []
    if "train" in names:
        made.append(Train("train", bench, base, decoder_job()))
    if "train_classify" in names:
        made.append(Train("train_classify", bench, base, classifier_job()))
    if "train_mlm" in names:
        made.append(Train("train_mlm", bench, base, mlm_job()))
    if "resume" in names:
        made.append(Resume("resume", bench, base, decoder_job()))
    models = base + ".models"
    shutil.copytree(base, models)
    for name, job in (("gpt", decoder_job(steps=4)), ("llama", llama_job())):
        write(models + "/%s.json" % name, json.dumps(job))
        bench.must(["train", name + ".json", "--output", name], models)
    bench.must(["export", "gpt", "--format", "huggingface", "--output", "hf"], models)
    bench.must(["export", "llama", "--format", "gguf", "--output", "llama.gguf"], models)
    rows = {
        "import": (["import", "hf", "--output", "imported"], "imported", None),
        "import_gguf": (["import", "llama.gguf", "--output", "imported"], "imported", None),
        "export": (["export", "gpt", "--format", "huggingface", "--output", "out"], "out", None),
        "export_gguf": (["export", "llama", "--format", "gguf", "--output", "out.gguf"], "out.gguf", None),
        "report": (["report", "gpt"], "gpt/report.html", without_clock),
    }
    for name in names:
        if name in rows:
            made.append(Files(name, bench, models, *rows[name]))
    return made


ALL = ["train", "train_classify", "train_mlm", "resume", "import", "import_gguf", "export", "export_gguf", "report"]


def verdict(scenario, folder, fault, outcome):
    """What is wrong with how the program took the fault; an empty text: nothing."""
    if outcome.hung:
        return "it hung"
    killed = fault.error == "kill"
    if killed:
        if outcome.code != -signal.SIGKILL:
            return "exit code %s of a killed process" % outcome.code
    elif outcome.code not in (0, 2):
        return "exit code %s" % outcome.code
    elif (fault.kind, fault.error) in HARMLESS and outcome.code != 0:
        return "exit code %s, and it need only try again" % outcome.code
    if outcome.code == 2:
        last = [line for line in outcome.err.splitlines() if line.startswith("brisk: ")]
        if len(last) != 1 or "internal error" in last[0] or len(last[0]) < 20:
            return "no clear message"
    # Where there is no memory to tidy up with, or the tidying itself fails, what is left waits for the next start.
    no_tidying = killed or fault.kind in ("small", "large", "unlink", "open_read", "rename", "fsync")
    not_removed = killed or "was not removed" in outcome.err
    damage = scenario.damage(folder, lambda name: no_tidying and (killed or is_left_over(name)))
    if damage:
        return "; ".join(damage)
    if outcome.code == 0:
        return scenario.problem_with(folder, not_removed)
    if scenario.is_complete(folder):  # the last flush of all failed
        return ""
    command = scenario.again(folder)
    after = scenario.bench.run(command, folder)
    if after.code != 0 or after.hung:
        return "afterwards, brisk %s: exit code %s: %s" % (" ".join(command), after.code, after.err[-600:])
    problem = scenario.problem_with(folder, not_removed)
    return "afterwards, brisk %s: %s" % (" ".join(command), problem) if problem else ""


class Tally:
    def __init__(self):
        self.rows, self.findings, self.lock = {}, [], threading.Lock()

    def add(self, scenario, kind, injected, code):
        with self.lock:
            row = self.rows.setdefault((scenario, kind), {"injected": 0, "missed": 0, "ok": 0, "refused": 0, "died": 0})
            if not injected:
                row["missed"] += 1
                return
            row["injected"] += 1
            row["ok" if code == 0 else "refused" if code == 2 else "died"] += 1

    def print(self):
        print("%-15s %-10s %8s %10s %8s %7s %7s" % ("command", "fails", "injected", "went on", "exit 2", "died", "missed"))
        total = 0
        for (scenario, kind), row in self.rows.items():
            print("%-15s %-10s %8d %10d %8d %7d %7d" % (scenario, kind, row["injected"], row["ok"], row["refused"],
                                                       row["died"], row["missed"]))
            total += row["injected"]
        print("%d faults injected, %d findings" % (total, len(self.findings)))


def points(count, most):
    """All of 1..count, or `most` of them, evenly."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({1 + (2 * i + 1) * count // (2 * most) for i in range(most)})


def choose_faults(counts, kinds, most, small, errors=None, draw=None):
    chosen = []
    for kind in kinds:
        limit = small if kind == "small" else most
        for at in points(counts[kind], limit):
            wanted = [error for error in ERRORS[kind] if errors is None or error in errors]
            if draw is not None:  # one of the errors, in turn
                wanted = [draw.choice(wanted)] if wanted else []
            chosen += [Fault(kind, at, error) for error in wanted]
    return chosen


def inject(bench, scenario, fault, place, tally, keep):
    folder = "%s/%s-%s" % (place, scenario.name, str(fault).replace(" ", "-"))
    scenario.set_up(folder)
    outcome, report = bench.run(scenario.command, folder, fault)
    tally.add(scenario.name, fault.kind, report.injected, outcome.code)
    problem = verdict(scenario, folder, fault, outcome) if report.injected else ""
    if problem:
        with tally.lock:
            tally.findings.append((scenario.name, fault, problem))
            print("FOUND %s: %s: %s\n  of %s, from %s\n  exit code %s: %s" % (
                scenario.name, fault, problem, report.what, bench.where(report), outcome.code,
                outcome.err.strip()[-500:].replace("\n", "\n    ")), flush=True)
    if not (problem and keep):
        shutil.rmtree(folder)
    for rest in (folder + ".report",):
        if os.path.exists(rest):
            os.remove(rest)


def run_faults(arguments, bench, place):
    tally = Tally()
    base = place + "/base"
    os.mkdir(base)
    begin = time.monotonic()
    names = arguments.commands.split(",") if arguments.commands else ALL
    kinds = arguments.kinds.split(",") if arguments.kinds else KINDS
    errors = arguments.errors.split(",") if arguments.errors else None
    draw = random.Random(arguments.seed) if arguments.one_error else None
    for scenario in scenarios(bench, base, names):
        folder = place + "/count"
        scenario.set_up(folder)
        outcome, report = bench.run(scenario.command, folder, count=True)
        shutil.rmtree(folder)
        if outcome.code != 0:
            sys.exit("brisk %s: exit code %s with its calls counted\n%s" % (scenario.command, outcome.code, outcome.err))
        if arguments.at:
            faults = [Fault(kind, arguments.at, error) for kind in kinds for error in ERRORS[kind]
                      if errors is None or error in errors]
        else:
            faults = choose_faults(report.counts, kinds, arguments.most, arguments.small, errors, draw)
        print("%s: %s; %d faults" % (scenario.name, ", ".join("%s %d" % (kind, report.counts[kind]) for kind in kinds
                                                              if report.counts[kind]), len(faults)), flush=True)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for done in pool.map(lambda fault: inject(bench, scenario, fault, place, tally, arguments.keep), faults):
                pass
    tally.print()
    print("in %.0f s" % (time.monotonic() - begin))
    return len(tally.findings)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name, help_text):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--build", default="build", help="build folder with brisk and the library (build)")
        command.add_argument("--brisk", help="the program, if elsewhere")
        command.add_argument("--preload", help="the library that makes calls fail, if elsewhere")
        command.add_argument("--folder", help="where to work (a temporary folder); on a memory disk it is faster")
        command.add_argument("--jobs", type=int, default=2, help="runs at once (2)")
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--keep", action="store_true", help="keep the folders of findings")
        return command

    faults = add("faults", "make every call of a kind fail, one after another")
    faults.add_argument("--commands", help="of " + ",".join(ALL))
    faults.add_argument("--kinds", help="of " + ",".join(KINDS))
    faults.add_argument("--errors", help="of those of the kinds: ENOSPC, EIO, EINTR, short, full, kill, ...")
    faults.add_argument("--most", type=int, default=1 << 40, help="calls of a kind, sampled evenly (all)")
    faults.add_argument("--small", type=int, default=500, help="allocations below 1 MiB (500)")
    faults.add_argument("--at", type=int, help="this call alone")
    faults.add_argument("--one-error", action="store_true", help="one of the errors for each call, not all")
    faults.set_defaults(function=run_faults)

    arguments = parser.parse_args()
    bench = Bench(arguments)
    place = tempfile.mkdtemp(prefix="brisk-faults-", dir=arguments.folder)
    try:
        found = arguments.function(arguments, bench, place)
    finally:
        if getattr(arguments, "keep", False):
            print("kept: " + place)
        else:
            shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
