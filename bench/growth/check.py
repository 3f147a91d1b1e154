#!/usr/bin/env python3
"""Checks of the code in bench/growth, run by ctest:   bench/growth/check.py [BRISK]

With a built brisk also that the theoretical lines are those of what brisk plans.
"""
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import draw
import page
import text
from measure import Brisk
from panels import panels
from sweeps import SWEEPS, Plan, core_counts, shape_of
from svg import Scale, logarithmic_ticks, ticks
from theory import Shape, activation_bytes, flop_per_token, memory_bytes, parameters, state_bytes

BRISK = sys.argv[1] if len(sys.argv) > 1 else ""


def made_up_results():
    """A machine on which the theory holds, but for narrow models, which are twice as slow, and a program of 20 MiB."""
    plan = Plan(list(SWEEPS), False, 16)
    shapes = []
    for setting in plan.points():
        shape = shape_of(setting)
        ms = flop_per_token(shape) * plan.tokens / 1e9 / setting["cores"] * (2 if setting["width"] < 100 else 1)
        ledger = {"forward_linear": 0.3 * ms, "backward_linear": 0.6 * ms, "optimizer": 0.1 * ms}
        memory = memory_bytes(shape, plan.tokens, "fp32")
        run = {"step_ms": ms, "peak_memory_bytes": memory + 20 * 2**20, "planned_memory_bytes": memory, "utilisation": 0.5,
               "peak_gflops": 100.0 * setting["cores"], "ledger": ledger}
        shapes.append({"setting": setting, "runs": [dict(run, step_ms=ms * noise) for noise in (1, 1.02, 0.98)]})
    corpora = []
    for size in plan.sweeps["corpus"]:
        def start(seconds, memory):
            return {"start_seconds": seconds, "train_seconds": 0.5, "peak_memory_bytes": memory, "anonymous_bytes": 50e6}
        corpora.append({"megabytes": size, "runs": [{"bytes": size * 1e6, "cache_bytes": size * 5e5, "vocabulary": start(0.1 + 0.3 * size, 6e7 + 1.5e6 * size),
                                                     "tokens": start(0.1 + 0.1 * size, 6e7 + 5e5 * size), "again": start(0.1, 6e7)}]})
    return {"command": "bench/growth/run.py", "date": "2026-01-01", "version": "1", "base": plan.base, "tokens": plan.tokens, "precision": "fp32",
            "machine": {"cpu": "A <made-up> CPU", "cores": 16, "isa": "avx2", "memory_total_bytes": 2**34, "system": "Linux"}, "rounds": 3,
            "minutes": 6.0, "text": "book.txt", "seed": 1, "sweeps": plan.sweeps, "shapes": shapes, "corpus": corpora}


class Theory(unittest.TestCase):
    def test_knows_gpt2(self):
        gpt2 = Shape(width=768, layers=12, vocabulary=50257, length=1024)
        self.assertEqual(parameters(gpt2), 124_439_808)
        self.assertEqual(flop_per_token(gpt2), 6 * (12 * 12 * 768**2 + 50257 * 768) + 6 * 12 * 1024 * 768)
        self.assertEqual(state_bytes(gpt2, "fp32"), 16 * 124_439_808)

    @unittest.skipUnless(os.access(BRISK, os.X_OK), "no brisk to compare with")
    def test_is_what_brisk_plans(self):
        with tempfile.TemporaryDirectory() as scratch:
            brisk = Brisk(BRISK, scratch, 1)
            for precision in ("fp32", "bf16"):
                for width, layers, vocabulary, length in ((32, 1, 2000, 16), (64, 3, 1000, 64), (128, 2, 3000, 32)):
                    setting = {"width": width, "layers": layers, "vocabulary": vocabulary, "length": length, "cores": 1}
                    shape = shape_of(setting)
                    run = brisk.shape(setting, 256, 0.001, precision)
                    self.assertEqual(run["parameters"], parameters(shape), setting)
                    self.assertEqual(run["flop_per_token"], flop_per_token(shape), setting)
                    self.assertAlmostEqual(run["state_bytes"] / state_bytes(shape, precision), 1, delta=0.01, msg=setting)
                    self.assertAlmostEqual(run["activation_bytes"] / activation_bytes(shape, 256, precision), 1, delta=0.05, msg=setting)


class Lines(unittest.TestCase):
    def test_go_through_their_anchor_and_hold_where_the_theory_does(self):
        results = made_up_results()
        for sweep in SWEEPS:
            for panel in panels(results, sweep):
                for series in panel.series:
                    if series.anchor is not None:
                        self.assertAlmostEqual(series.ratio(series.anchor), 1, places=6, msg=(sweep, panel.title, series.name))
        for sweep in ("layers", "vocabulary", "length", "cores"):
            for value, middle in panels(results, sweep)[0].series[0].measured.items():
                self.assertAlmostEqual(panels(results, sweep)[0].series[0].line(value), middle, msg=(sweep, value))
        time, memory = panels(results, "width")
        self.assertAlmostEqual(time.series[0].ratio(64), 2)
        self.assertAlmostEqual(time.series[0].ratio(1024), 1)
        self.assertAlmostEqual(memory.series[0].measured[512] - memory.series[0].line(512), 20)

    def test_cores_are_one_to_all(self):
        self.assertEqual(core_counts(1), [1])
        self.assertEqual(core_counts(2), [1, 2])
        self.assertEqual(core_counts(6), [1, 2, 4, 6])
        self.assertEqual(core_counts(16), [1, 2, 4, 8, 12, 16])


class Page(unittest.TestCase):
    def test_says_where_measurement_leaves_the_line(self):
        words = page.page(made_up_results()).replace("\n  ", " ")
        width = words[words.index("## Width"):words.index("## Layers")]
        self.assertIn("Time: within 15 % of the line at 128 to 1024; farthest from it at 32, 2.00 times the line; products take", width)
        self.assertIn("narrow products reach less of the peak", width)
        self.assertIn("| 256 (anchor) |", width)
        self.assertIn("Time: within 15 % of the line everywhere.", words[words.index("## Length"):])
        self.assertIn("16 cores are 16.0 times as fast as 1", words)
        for sweep in SWEEPS:
            self.assertIn(f"(growth/{sweep}.svg)", words)

    def test_gives_no_reason_that_points_the_other_way(self):
        for factor, reason in ((3, "sequences are listed"), (1 / 3, None)):
            results = made_up_results()
            results["corpus"][-1]["runs"][0]["again"]["start_seconds"] *= factor
            lines = page.page(results).replace("\n  ", " ").splitlines()
            words = next(line for line in lines if line.startswith("- Time, tokens there"))
            self.assertIn(f"farthest from it at 64, {factor:.2f} times the line", words)
            self.assertEqual("likely" in words, reason is not None, words)
            self.assertIn(reason or "the line.", words)

    def test_joins_neighbours(self):
        self.assertEqual(page.ranges([1, 2, 4, 8, 16], [1, 4, 8, 16]), "1 and 4 to 16")
        self.assertEqual(page.ranges([1, 2], []), "")


class Plots(unittest.TestCase):
    def test_stay_inside_the_picture(self):
        results = made_up_results()
        for sweep, values in results["sweeps"].items():
            picture = draw.draw(panels(results, sweep), page.X_NAMES[sweep], values)
            xml.etree.ElementTree.fromstring(picture)
            numbers = re.findall(r'\b(cx|x|x1|x2|cy|y|y1|y2)="([^"]*)"', picture)
            numbers += [pair for points in re.findall(r'points="([^"]*)"', picture) for point in points.split() for pair in zip("xy", point.split(","))]
            self.assertGreater(len(numbers), 100)
            for name, place in numbers:
                self.assertTrue(0 <= float(place) <= (draw.WIDTH if "x" in name else draw.HEIGHT), (sweep, name, place))
            self.assertEqual(picture.count("<circle"), sum(len(s.measured) + 1 for panel in panels(results, sweep) for s in panel.series))

    def test_have_round_ticks(self):
        self.assertEqual(ticks(0, 60, 6), [0, 10, 20, 30, 40, 50, 60])
        self.assertEqual(logarithmic_ticks(0.9, 2000, 7), [1, 3, 10, 30, 100, 300, 1000])
        self.assertEqual(logarithmic_ticks(0.9, 2000, 4), [1, 10, 100, 1000])
        self.assertEqual(logarithmic_ticks(9, 60, 5), [10, 20, 50])
        for low, high in ((1, 1.5), (0.003, 7), (80, 9e9)):
            values = logarithmic_ticks(low, high, 7)
            self.assertTrue(1 <= len(values) <= 7 and low <= values[0] and values[-1] <= high * (1 + 1e-9), values)

    def test_place_values(self):
        self.assertEqual(Scale(0, 10, 100, 200)(5), 150)
        self.assertAlmostEqual(Scale(1, 100, 0, 200, logarithmic=True)(10), 100)


class Corpus(unittest.TestCase):
    def test_is_the_same_for_a_seed_and_begins_alike(self):
        lines = text.made_up_lines(3)
        self.assertEqual(lines, text.made_up_lines(3))
        with tempfile.TemporaryDirectory() as scratch:
            def make(name, size, seed):
                path = os.path.join(scratch, name)
                self.assertEqual(text.make(path, size, lines, seed), os.path.getsize(path))
                with open(path, "rb") as file:
                    return file.read()
            small, large, other = make("small", 5000, 1), make("large", 50000, 1), make("other", 5000, 2)
        self.assertTrue(5000 <= len(small) < 20000)
        self.assertTrue(large.startswith(small))
        self.assertNotEqual(small, other)


unittest.main(argv=[sys.argv[0]])
