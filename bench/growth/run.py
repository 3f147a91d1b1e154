#!/usr/bin/env python3
"""How time and memory grow with width, layers, vocabulary, length, cores and corpus, each next to its theoretical line.

  bench/growth/run.py --output docs                   # about six minutes on 16 quiet cores
  bench/growth/run.py --output docs --draw            # only draws and writes again what was measured there
  bench/growth/run.py --output /tmp/growth --quick    # the whole path in a minute or two; its figures mean little

Writes OUTPUT/growth.md, OUTPUT/growth/SWEEP.svg and OUTPUT/growth/results.json. Needs a built brisk, and no package of Python.

A script and not a command of brisk: each point has to be a process of its own, or its peak memory would be that of the largest point
before it; what it writes is a page of this repository, not something that someone who trains a model needs installed; and it shares its
drawing with bench/quality. What someone may want, one point, is in the program: brisk bench lm --width 512 --layers 4.
"""
import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

import draw
import page
import text
from measure import Brisk
from panels import panels
from sweeps import MEGABYTE, SWEEPS, Plan, shape_of
from theory import flop_per_token, parameters

HERE = os.path.dirname(os.path.abspath(__file__))


def say(words):
    print(words, flush=True)


def check_theory(setting, run):
    """The formulas of theory.py and brisk's own counts are one."""
    shape = shape_of(setting)
    for name, formula in (("parameters", parameters(shape)), ("flop_per_token", flop_per_token(shape))):
        if run[name] != formula:
            sys.exit(f"{setting}: brisk counts {run[name]:.0f} {name}, the theoretical line {formula:.0f}; bench/growth/theory.py is not up to date")


def make_corpora(options, sizes, brisk):
    lines = text.lines_of(options.text) if options.text else text.made_up_lines(options.seed)
    text.make(brisk.path("validation.txt"), 20_000, lines, options.seed + 1)
    for size in sizes:
        text.make(brisk.path(f"{size}.txt"), round(size * MEGABYTE), lines, options.seed)


def measure_round(options, plan, brisk, results):
    """Every point once, so that what slows the machine for a while is not all in one point."""
    round_name = f"round {results['rounds'] + 1}/{options.rounds}"
    for place, point in enumerate(results["shapes"], 1):
        setting = point["setting"]
        run = brisk.shape(setting, plan.tokens, options.seconds, results["precision"])
        check_theory(setting, run)
        point["runs"].append(run)
        say(f"{round_name}, {place}/{len(results['shapes'])}: " + ", ".join(f"{name} {value}" for name, value in setting.items()) +
            f": {run['step_ms']:.1f} ms a step, {run['peak_memory_bytes'] / 2**20:.0f} MiB")
    for corpus in results["corpus"]:
        run = brisk.corpus(brisk.path(f"{corpus['megabytes']}.txt"), brisk.path("validation.txt"), results["precision"])
        corpus["runs"].append(run)
        say(f"{round_name}: {corpus['megabytes']} MB of text: {run['vocabulary']['start_seconds']:.2f} s to the first step, "
            f"{run['tokens']['start_seconds']:.2f} with the vocabulary, {run['again']['start_seconds']:.2f} with the tokens")
    results["rounds"] += 1


def measure(options, names, scratch):
    """The results after each round, so that those of a run that is stopped are there."""
    begin = time.monotonic()
    machine = Brisk(options.brisk, scratch, 1).machine()
    threads = options.threads or machine["cores"]
    if not 1 <= threads <= machine["cores"]:
        sys.exit(f"--threads {threads}: this machine has 1 to {machine['cores']}")
    plan, brisk = Plan(names, options.quick, threads), Brisk(options.brisk, scratch, threads)
    # One number format for all points: where brisk may choose, what it chooses for the shape that the sweeps share.
    precision = options.precision
    if precision == "auto":
        precision = brisk.shape(plan.base, plan.tokens, 0.1, "auto")["precision"]
    if "corpus" in plan.sweeps:
        make_corpora(options, plan.sweeps["corpus"], brisk)
    results = {"command": command(), "date": datetime.date.today().isoformat(),
               "version": subprocess.run([options.brisk, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1],
               "machine": machine, "base": plan.base, "tokens": plan.tokens, "precision": precision, "rounds": 0, "seconds": options.seconds,
               "seed": options.seed, "text": os.path.basename(options.text) if options.text else "made-up words", "sweeps": plan.sweeps,
               "shapes": [{"setting": setting, "runs": []} for setting in plan.points()],
               "corpus": [{"megabytes": size, "runs": []} for size in plan.sweeps.get("corpus", [])]}
    for _ in range(options.rounds):
        measure_round(options, plan, brisk, results)
        results["minutes"] = (time.monotonic() - begin) / 60
        yield results


def command():
    """What was typed, for the page: whatever the folders were called."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--output")
    parser.add_argument("--brisk")
    return shlex.join(["bench/growth/run.py", "--output", "docs", *parser.parse_known_args()[1]])


def write(path, words):
    with open(path + ".partial", "w") as file:
        file.write(words)
    os.replace(path + ".partial", path)


def publish(results, output):
    folder = os.path.join(output, "growth")
    for sweep, values in results["sweeps"].items():
        write(os.path.join(folder, sweep + ".svg"), draw.draw(panels(results, sweep), page.X_NAMES[sweep], values))
    write(os.path.join(output, "growth.md"), page.page(results))
    say(f"{os.path.join(output, 'growth.md')}, {folder}/")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="folder of growth.md and growth/; docs makes it this repository's page")
    parser.add_argument("--brisk", default=os.path.join(HERE, "..", "..", "build", "brisk"))
    parser.add_argument("--sweeps", default=",".join(SWEEPS), help="some of them, by comma (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="cores of all sweeps, and the most of theirs (default: all)")
    parser.add_argument("--rounds", type=int, help="of which the median is taken (default: 3, quick 1)")
    parser.add_argument("--seconds", type=float, help="of each point; three steps at least (default: 1.2, quick 0.1)")
    parser.add_argument("--precision", choices=["auto", "fp32", "bf16"], default="auto")
    parser.add_argument("--text", help="a text whose lines the corpora are made of (default: made-up words)")
    parser.add_argument("--seed", type=int, default=1, help="of the corpora (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few small points, to see that it all runs")
    parser.add_argument("--draw", action="store_true", help="measure nothing; draw what OUTPUT/growth/results.json holds")
    options = parser.parse_args()
    names = options.sweeps.split(",")
    for name in names:
        if name not in SWEEPS:
            parser.error(f"--sweeps: {name} is none of {', '.join(SWEEPS)}")
    options.rounds = options.rounds if options.rounds is not None else 1 if options.quick else 3
    options.seconds = options.seconds if options.seconds is not None else 0.1 if options.quick else 1.2
    if options.rounds < 1 or not options.seconds > 0:
        parser.error(f"--rounds {options.rounds} --seconds {options.seconds:g}: expected rounds from 1 and seconds above 0")
    stored = os.path.join(options.output, "growth", "results.json")
    if options.draw:
        if not os.path.exists(stored):
            sys.exit(f"{stored}: there is none; measure first, without --draw")
        with open(stored) as file:
            publish(json.load(file), options.output)
        return
    options.brisk = os.path.abspath(options.brisk)
    if not os.access(options.brisk, os.X_OK):
        sys.exit(f"{options.brisk}: there is no such program; build it with scripts/build.sh, or name it with --brisk")
    os.makedirs(os.path.dirname(stored), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="brisk-growth-") as scratch:
        try:
            for results in measure(options, names, scratch):
                write(stored, json.dumps(results, indent=1) + "\n")
                publish(results, options.output)
        except (RuntimeError, ValueError, OSError) as problem:
            sys.exit(str(problem))


main()
