#!/usr/bin/env python3
"""Does brisk go on under faults? Commands: faults, kills, soak, large_corpus, quick (docs/testing.md).

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
        needed = [self.brisk] if arguments.command in ("kills", "soak", "large_corpus") else [self.brisk, self.preload]
        for path in needed:
            if not os.path.exists(path):
                sys.exit("%s: there is none; build brisk with the tests, or name it with --brisk, --preload" % path)

    def environment(self, folder):
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "BRISK_ISA", "LD_LIBRARY_PATH") if key in os.environ}
        # On a GPU algorithms that are chosen by their time are not the same in every process.
        return {**kept, "XDG_CACHE_HOME": folder + "/cache", "TERM": "dumb", "LC_ALL": "C", "BRISK_CUDA_TIMING": "0"}

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


def difference(found, expected, may_differ=()):
    """The first thing in which two states differ, or an empty text."""
    for key, value in expected.items():
        if key in may_differ:
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

    def problem_with(self, folder, may_differ=()):
        try:
            return difference(self.result(folder), self.expected, may_differ)
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
            elif name.endswith((".lock", ".unfinished")):
                continue
            elif name not in before:
                problems.append(name + ": what is this?")
            elif read(where) != read(before[name]):
                problems.append(name + " was changed")
        return problems

    def problem_with(self, folder, may_differ=()):
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


# What could not be removed, and was told, or what a kill left just before it would have been; and in the cache, which many
# runs share, what nobody has touched for a week is removed, by whoever comes then.
OLD_CHECKPOINTS = ("checkpoints", "left over")
CACHE = ("left over of the cache",)


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
    # A checkpoint whose folder could not be flushed counts as not saved, and then none is removed.
    not_removed = killed or any(said in outcome.err for said in ("was not removed", "was not saved", "could not be saved",
                                                                 "out of memory"))
    may_differ = OLD_CHECKPOINTS if not_removed else ()
    if no_tidying:
        may_differ += CACHE
    damage = scenario.damage(folder, lambda name: no_tidying and (killed or is_left_over(name)))
    if damage:
        return "; ".join(damage)
    if outcome.code == 0:
        return scenario.problem_with(folder, may_differ)
    if scenario.is_complete(folder):  # the last flush of all failed
        return ""
    command = scenario.again(folder)
    after = scenario.bench.run(command, folder)
    if after.code != 0 or after.hung:
        return "afterwards, brisk %s: exit code %s: %s" % (" ".join(command), after.code, after.err[-600:])
    problem = scenario.problem_with(folder, may_differ)
    return "afterwards, brisk %s: %s" % (" ".join(command), problem) if problem else ""


class Tally:
    def __init__(self):
        self.rows, self.order, self.findings, self.lock = {}, [], [], threading.Lock()

    def add(self, scenario, kind, injected, code):
        with self.lock:
            if scenario not in self.order:
                self.order.append(scenario)
            row = self.rows.setdefault((scenario, kind), {"injected": 0, "missed": 0, "ok": 0, "refused": 0, "died": 0})
            if not injected:
                row["missed"] += 1
                return
            row["injected"] += 1
            row["ok" if code == 0 else "refused" if code == 2 else "died"] += 1

    def print(self):
        print("%-15s %-10s %8s %10s %8s %7s %7s" % ("command", "fails", "injected", "went on", "exit 2", "died", "missed"))
        total = 0
        for (scenario, kind), row in sorted(self.rows.items(), key=lambda item: (self.order.index(item[0][0]), KINDS.index(item[0][1]))):
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


def run_kills(arguments, bench, place):
    """kill -9 at random moments, resumed until the end: not a bit may differ."""
    base = place + "/base"
    os.mkdir(base)
    write_inputs(base)
    often = {"save_steps": 4, "eval_steps": 10}
    jobs = {"decoder": decoder_job(120, **often), "classifier": classifier_job(120, num_epochs=20, **often),
            "mlm": mlm_job(120, num_epochs=20, **often)}
    for job in jobs.values():
        job["device"] = getattr(arguments, "device", "cpu")
    made = []
    for name, job in jobs.items():
        made.append(Train(name, bench, base, job))
        folder = place + "/time"
        made[-1].set_up(folder)
        made[-1].seconds = bench.must(made[-1].command, folder).seconds
        shutil.rmtree(folder)
    tally = {name: {"kills": 0, "after a checkpoint": 0, "runs": 0, "finished": 0} for name in jobs}
    lock = threading.Lock()
    findings = []

    def total():
        return sum(row["kills"] for row in tally.values())

    def live(number):
        """One run, from its start to its end, through as many kills as it takes."""
        scenario = made[number % len(made)]
        draw = random.Random("%d %d" % (arguments.seed, number))
        row = tally[scenario.name]
        folder = "%s/run-%d" % (place, number)
        with lock:
            if total() >= arguments.kills:
                return
            row["runs"] += 1
        scenario.set_up(folder)
        problem = ""
        command = scenario.command
        for _ in range(12):
            process = bench.start(command, folder)
            reader = threading.Thread(target=process.communicate)
            reader.start()
            reader.join(scenario.seconds * 1.1 * draw.random())
            process.kill()
            reader.join()
            if process.returncode == 0:
                break
            if process.returncode != -signal.SIGKILL:
                problem = "exit code %s of brisk %s" % (process.returncode, " ".join(command))
                break
            with lock:
                row["kills"] += 1
                row["after a checkpoint"] += 1 if checkpoints(folder + "/run") else 0
            problem = "; ".join(scenario.damage(folder, lambda name: True))
            if problem:
                break
            command = scenario.again(folder)
        if not problem:
            outcome = bench.run(scenario.again(folder), folder)
            if outcome.code != 0:
                problem = "exit code %s: %s" % (outcome.code, outcome.err[-600:])
            else:
                problem = scenario.problem_with(folder, OLD_CHECKPOINTS + CACHE)
        with lock:
            row["finished"] += 0 if problem else 1
            if problem:
                findings.append(problem)
                print("FOUND %s, run %d: %s" % (scenario.name, number, problem), flush=True)
        if not (problem and arguments.keep):
            shutil.rmtree(folder)

    begin = time.monotonic()
    number = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        while total() < arguments.kills:
            batch = range(number, number + 2 * arguments.jobs)
            number += len(batch)
            list(pool.map(live, batch))
    for name, row in tally.items():
        print("%-11s %s" % (name, ", ".join("%d %s" % (count, what) for what, count in row.items())))
    print("%d kills, %d after a checkpoint, %d findings, in %.0f s" % (
        total(), sum(row["after a checkpoint"] for row in tally.values()), len(findings), time.monotonic() - begin))
    return len(findings)


def what_cannot_fail(bench, place):
    """A file that is half of what the program believes it wrote must be found; otherwise nothing here is worth much."""
    base = place + "/can-fail"
    os.mkdir(base)
    blind = 0
    for scenario in scenarios(bench, base, ["train", "export", "import", "report"]):
        folder = place + "/lie"
        scenario.set_up(folder)
        _, counted = bench.run(scenario.command, folder, count=True)
        shutil.rmtree(folder)
        fault = Fault("write", counted.counts["write"], "lie")
        scenario.set_up(folder)
        outcome, report = bench.run(scenario.command, folder, fault)
        if not report.injected or not verdict(scenario, folder, fault, outcome):
            print("BLIND: half of %s was written by %s, and nobody saw it" % (report.what, scenario.name))
            blind += 1
        shutil.rmtree(folder)
    return blind


def run_quick(arguments, bench, place):
    """The tier of ctest: a few faults of each kind and command, a few kills."""
    found = what_cannot_fail(bench, place)
    for options, part in (({"most": 1, "small": 3, "commands": "train,resume", "one_error": True}, "faults"),
                          ({"most": 1, "small": 1, "commands": "import,export,report,train_classify", "one_error": True,
                            "kinds": "write,fsync,rename,thread,large,small"}, "more"),
                          ({"kills": 6}, "kills")):
        given = argparse.Namespace(**{**vars(arguments), "kinds": None, "errors": None, "at": None, **options})
        os.mkdir(place + "/" + part)
        found += (run_kills if part == "kills" else run_faults)(given, bench, place + "/" + part)
    return found


def median(numbers):
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2] if ordered else 0.0


def memory_of(process):
    """VmRSS and its part that is no file, in MiB."""
    with open("/proc/%d/status" % process) as file:
        sizes = dict(re.findall(r"(VmRSS|RssAnon):\s+(\d+) kB", file.read()))
    return int(sizes.get("VmRSS", 0)) / 1024, int(sizes.get("RssAnon", 0)) / 1024


def processor_seconds(process):
    with open("/proc/%d/stat" % process) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_soak(arguments, bench, place):
    """Everything on for an hour: what grows, and what becomes slower?"""
    write(place + "/text.txt", words(20000))
    job = decoder_job(steps=0, eval_steps=200, save_steps=100, sample_tokens=32, histogram_steps=100, threads=1,
                      logging_steps=10, save_total_limit=2, batch_size=16)
    job["model"].update({"d_model": 64, "vocab_size": 1000})
    job["training"].pop("max_steps")
    job["training"]["stop"] = "%gm" % arguments.minutes
    write(place + "/soak.json", json.dumps(job))
    begin = time.monotonic()
    environment = bench.environment(place)
    process = subprocess.Popen([bench.brisk, "train", "soak.json", "--output", "run"], cwd=place, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(place + "/err", "w"))
    period = min(10.0, arguments.minutes * 60 / 60)
    seen = []  # seconds, VmRSS, RssAnon, processor seconds, descriptors, threads
    while process.poll() is None:
        try:
            seen.append((time.monotonic() - begin, *memory_of(process.pid), processor_seconds(process.pid),
                         len(os.listdir("/proc/%d/fd" % process.pid)), len(os.listdir("/proc/%d/task" % process.pid))))
        except (OSError, IndexError):
            break
        time.sleep(period)
    process.wait()
    lines = whole_lines(place + "/run")
    steps = [line for line in lines if "loss" in line]
    summary = json.loads(read(place + "/run/summary.json")) if process.returncode == 0 else {}
    print("exit code %s after %.1f minutes, %d steps, %d evaluations, %d samples, %d checkpoint saves asked" % (
        process.returncode, (time.monotonic() - begin) / 60, steps[-1]["step"] if steps else 0,
        sum(1 for line in lines if "validation_loss" in line),
        len(read(place + "/run/samples.jsonl").splitlines()) if os.path.exists(place + "/run/samples.jsonl") else 0,
        (steps[-1]["step"] if steps else 0) // 100))
    if process.returncode != 0 or len(seen) < 20:
        print(read(place + "/err").decode()[-1000:])
        return 1
    seen = seen[len(seen) // 20:-1]  # without the start and the end
    tenth = max(1, len(seen) // 10)
    print("%8s %10s %10s %12s %18s %4s" % ("minute", "VmRSS MiB", "anon MiB", "tokens/s", "tokens/processor s", "fds"))

    def tokens_at(seconds):
        before = [line for line in steps if line["seconds"] <= seconds]
        return before[-1]["tokens"] if before else 0

    rows = []
    for i in range(10):
        part = seen[i * tenth:(i + 1) * tenth] if i < 9 else seen[9 * tenth:]
        if len(part) < 2:
            continue
        first, last = part[0], part[-1]
        tokens = tokens_at(last[0]) - tokens_at(first[0])
        rows.append((median([row[1] for row in part]), median([row[2] for row in part]),
                     tokens / (last[0] - first[0]), tokens / max(1e-9, last[3] - first[3]),
                     min(row[4] for row in part), min(row[5] for row in part)))  # one more while a checkpoint is written
        print("%8.1f %10.1f %10.1f %12.0f %18.0f %4d" % (first[0] / 60, *rows[-1][:5]))
    early, late = rows[1], rows[-1]
    growth = late[1] - early[1]
    problems = []
    if growth > max(4.0, 0.03 * early[1]):
        problems.append("memory grew by %.1f MiB of %.1f" % (growth, early[1]))
    if late[3] < 0.8 * early[3]:
        problems.append("%.0f tokens a second of processor time, %.0f before" % (late[3], early[3]))
    if late[4] > early[4] or late[5] > early[5]:
        problems.append("%d open files, %d before; %d threads, %d before" % (late[4], early[4], late[5], early[5]))
    print("memory %+.1f MiB, tokens/s %+.1f %%, tokens per processor second %+.1f %% from the second tenth to the last" % (
        growth, 100 * (late[2] / early[2] - 1), 100 * (late[3] / early[3] - 1)))
    print("ended: %s; %s" % (summary.get("ended"), "; ".join(problems) or "flat"))
    return len(problems)


class MemoryLimit:
    """A cgroup (version 2, or 1) of so many bytes; where none can be made, RLIMIT_DATA, which leaves cached files out."""

    def __init__(self, limit):
        self.limit, self.folder, self.kind = limit, None, "RLIMIT_DATA (no cgroup can be made here)"
        for root, name, kind in (("/sys/fs/cgroup", "memory.max", "cgroup v2"),
                                 ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "cgroup v1")):
            folder = "%s/brisk-faults-%d" % (root, os.getpid())
            try:
                os.mkdir(folder)
                if not os.path.exists(folder + "/" + name):
                    raise OSError("no cgroups are mounted there, or none for memory")
                write(folder + "/" + name, str(limit))
                for swap in ("memory.swap.max", "memory.swappiness"):
                    if os.path.exists(folder + "/" + swap):
                        write(folder + "/" + swap, "0")
                self.folder, self.kind = folder, kind
                return
            except OSError:
                if os.path.isdir(folder):
                    try:
                        os.rmdir(folder)
                    except OSError:
                        pass

    def enter(self):
        if self.folder:
            write(self.folder + "/cgroup.procs", str(os.getpid()))
        else:
            import resource
            resource.setrlimit(resource.RLIMIT_DATA, (self.limit, self.limit))

    def peak(self):
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            path = "%s/%s" % (self.folder, name)
            if self.folder and os.path.exists(path):
                return int(read(path))
        return 0

    def remove(self):
        if self.folder:
            os.rmdir(self.folder)


def run_large_corpus(arguments, bench, place):
    """A corpus `--times` as large as the memory that brisk is given: the same speed, the same result."""
    limit = arguments.memory << 20
    size = arguments.times * limit
    begin = time.monotonic()
    block = words(50000).splitlines()
    with open(place + "/text.txt", "w") as file:
        written = number = 0
        while written < size:  # no document is like another
            lines = []
            for i in range(0, len(block), 12):  # documents of some 1,200 bytes: brisk keeps a few numbers for each
                number += 1
                lines.append("%03x %03x %s\n" % (number >> 12, number & 4095, " ".join(block[i:i + 12])))
            written += file.write("".join(lines))
    print("a corpus of %d MiB, written in %.0f s" % (written >> 20, time.monotonic() - begin), flush=True)
    job = decoder_job(steps=arguments.steps, eval_steps=arguments.steps // 2, save_steps=arguments.steps // 4,
                      threads=2, logging_steps=10, max_length=128, batch_size=16)
    job["model"].update({"d_model": 256, "num_heads": 4})  # as slow as what anybody would train
    job["data"]["validation_fraction"] = 0.0001
    # Made beforehand: to learn one takes some 240 MiB, of however large a corpus.
    write(place + "/part.txt", "".join(lines))
    bench.must(["tokenizer", "train", "--vocab-size", "2000", "--output", "tokenizer.json", "part.txt"], place)
    job["data"]["tokenizer"] = "tokenizer.json"
    del job["model"]["vocab_size"]
    write(place + "/large.json", json.dumps(job))
    results = []
    for name in ("free", "limited", "free again"):
        shutil.rmtree(place + "/cache", ignore_errors=True)
        shutil.rmtree(place + "/run", ignore_errors=True)
        control = MemoryLimit(limit) if name == "limited" else None
        start = time.monotonic()
        process = subprocess.Popen([bench.brisk, "train", "large.json", "--output", "run"], cwd=place,
                                   env=bench.environment(place), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=open(place + "/err", "w"), preexec_fn=control.enter if control else None)
        process.wait()
        seconds = time.monotonic() - start
        peak = control.peak() if control else 0
        if control:
            control.remove()
        if process.returncode != 0:
            print("%s: exit code %s: %s" % (name, process.returncode, read(place + "/err").decode()[-1500:]))
            return 1
        summary = json.loads(read(place + "/run/summary.json"))
        tokens = max((os.path.getsize(path) for path in files_below(place + "/cache").values()), default=0)
        state = state_of_run(place + "/run")
        speed = median([line["tokens_per_second"] for line in whole_lines(place + "/run") if "loss" in line])
        results.append((name, seconds, speed, state))
        print("%-11s %s%.0f s in all, %.0f s before the first step; token file %d MiB; %.0f tokens/s; loss %.6f%s" % (
            name, "%s of %d MiB: " % (control.kind, limit >> 20) if control else "", seconds,
            summary["ledger"].get("start_up", 0) + summary["ledger"].get("data", 0), tokens >> 20, speed, state["loss"],
            "; most memory used, cached files included: %d MiB" % (peak >> 20) if peak else ""), flush=True)
    problem = difference(results[1][3], results[0][3])
    ratio = results[1][2] / ((results[0][2] + results[2][2]) / 2)
    print("tokens/s with the limit / without: %.3f; %s" % (ratio, problem or "the result is the same to the bit"))
    return (1 if problem else 0) + (1 if ratio < 0.8 else 0)


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
    kills = add("kills", "kill -9 at random moments, resumed until the end")
    kills.add_argument("--kills", type=int, default=1000)
    kills.add_argument("--device", default="cpu", help="of the jobs: cpu (default), cuda")
    kills.set_defaults(function=run_kills)
    soak = add("soak", "memory and speed of a long run with everything on")
    soak.add_argument("--minutes", type=float, default=60)
    soak.set_defaults(function=run_soak)
    large = add("large_corpus", "a corpus larger than the memory that brisk is given")
    large.add_argument("--memory", type=int, default=256, help="in MiB (256)")
    large.add_argument("--times", type=int, default=10, help="the corpus is this many times larger (10)")
    large.add_argument("--steps", type=int, default=200)
    large.set_defaults(function=run_large_corpus)
    quick = add("quick", "a few of all, as ctest does")
    quick.set_defaults(function=run_quick)

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
