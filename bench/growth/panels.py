"""From results to what is plotted: medians of the rounds, and the theoretical line of each.

    for panel in panels(results, "width"):          # time, memory
        for series in panel.series:
            series.measured, series.line            # {value: median}, a function of the value
"""
import dataclasses
import statistics
from typing import Callable

from measure import CORPUS_STEPS
from sweeps import shape_of
from theory import flop_per_token, memory_bytes

MEBIBYTE = 1 << 20


@dataclasses.dataclass
class Series:
    name: str
    measured: dict  # value: median of the rounds
    lowest: dict
    highest: dict
    line: Callable
    anchor: object = None  # where the line was laid through the measurement; none: nowhere

    def ratio(self, value):
        """How far the measurement is from the line: 1 is on it."""
        return self.measured[value] / self.line(value)


@dataclasses.dataclass
class Panel:
    title: str
    unit: str
    series: list


def series(name, runs, read, line, anchor=None):
    """`runs`: {value: [run of each round]}; `line` may ask for the median at a value."""
    median = {value: statistics.median(map(read, each)) for value, each in runs.items()}
    return Series(name, median, {value: min(map(read, each)) for value, each in runs.items()},
                  {value: max(map(read, each)) for value, each in runs.items()}, line(median), anchor)


def runs_of(results, sweep):
    """{value: [run of each round]} of a sweep."""
    if sweep == "corpus":
        return {point["megabytes"]: point["runs"] for point in results["corpus"]}
    by_setting = [(point["setting"], point["runs"]) for point in results["shapes"]]
    return {value: next(runs for setting, runs in by_setting if setting == dict(results["base"], **{sweep: value}))
            for value in results["sweeps"][sweep]}


def anchor_of(results, sweep):
    """The point whose utilisation the line has everywhere: one core, or the shape that all sweeps share."""
    return min(results["sweeps"]["cores"]) if sweep == "cores" else results["base"][sweep]


def time_ratio(results, sweep, value, anchor):
    """How many times the anchor's time the theory gives a value."""
    if sweep == "cores":
        return anchor / value
    setting = dict(results["base"])
    return flop_per_token(shape_of(dict(setting, **{sweep: value}))) / flop_per_token(shape_of(dict(setting, **{sweep: anchor})))


def shape_panels(results, sweep):
    runs, anchor = runs_of(results, sweep), anchor_of(results, sweep)

    def time_line(median):
        return lambda value: median[anchor] * time_ratio(results, sweep, value, anchor)

    def memory_line(_):
        def bytes_at(value):
            setting = dict(results["base"], **{sweep: value})
            rows = max(results["tokens"], setting["length"])
            return memory_bytes(shape_of(setting), rows, results["precision"]) / MEBIBYTE
        return bytes_at

    return [Panel("time of a step", "ms", [series("measured", runs, lambda run: run["step_ms"], time_line, anchor)]),
            Panel("peak memory", "MiB", [series("measured", runs, lambda run: run["peak_memory_bytes"] / MEBIBYTE, memory_line)])]


def corpus_panels(results):
    runs = runs_of(results, "corpus")
    first, last = min(runs), max(runs)
    start = statistics.median(run["again"]["start_seconds"] for run in runs[first])

    def flat(median):
        return lambda value: median[first]

    def proportional(median):
        """The start that every run has, and a share of the text."""
        return lambda value: start + max(0.0, median[last] - start) * value / last

    def with_bytes(*keys):
        """The smallest corpus's memory, and every byte that a larger one has more."""
        size = {value: statistics.median(sum(run[key] for key in keys) for run in each) for value, each in runs.items()}
        slope = (size[last] - size[first]) / max(last - first, 1) / MEBIBYTE
        return lambda median: lambda value: median[first] + slope * (value - first)

    def seconds(kind, key="start_seconds"):
        return lambda run: run[kind][key]

    def memory(kind, key="peak_memory_bytes"):
        return lambda run: run[kind][key] / MEBIBYTE

    return [Panel("time", "s", [series("first start", runs, seconds("vocabulary"), proportional, last),
                                series("vocabulary there", runs, seconds("tokens"), proportional, last),
                                series("tokens there", runs, seconds("again"), flat, first),
                                series(f"{CORPUS_STEPS} steps", runs, seconds("again", "train_seconds"), flat, first)]),
            Panel("peak memory", "MiB", [series("first start", runs, memory("vocabulary"), with_bytes("bytes", "cache_bytes"), first),
                                         series("vocabulary there", runs, memory("tokens"), with_bytes("cache_bytes"), first),
                                         series("less mapped files", runs, memory("tokens", "anonymous_bytes"), flat, first)])]


def panels(results, sweep):
    return corpus_panels(results) if sweep == "corpus" else shape_panels(results, sweep)
