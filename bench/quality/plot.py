"""The plot of validation loss against seconds of training, as one SVG."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from svg import GRID, LABEL, LINE as TWIN, MEASURED as BRISK, TITLE, Picture, Scale, ticks  # noqa: E402

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 46, 52


def draw(results):
    twin, runs = results["twin"], results["brisk"]["runs"]
    rows = results["brisk"]["rows"]
    seed = results["seeds"][0]
    courses = [run for run in runs if run["seed"] == seed]
    goal, reached = twin["validation_loss"], results.get("reached")
    right = 1.04 * max([twin["train_seconds"]] + [row["train_seconds"] for row in rows])
    lowest = min([goal] + [row["validation_loss"] for row in rows])
    low, high = lowest - 0.12, goal + 1.6
    x = Scale(0, right, LEFT, WIDTH - RIGHT)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    picture = Picture(WIDTH, HEIGHT, "Validation loss against seconds of training: brisk and compiled PyTorch")

    def course(points, colour, width, more=""):
        inside = [(x(p["seconds"]), y(p["validation_loss"])) for p in points if p["validation_loss"] <= high]
        picture.polyline(inside, colour, width, more)

    for value in ticks(0, right, 8):
        picture.line(x(value), TOP, x(value), HEIGHT - BOTTOM, GRID)
        picture.text(x(value), HEIGHT - BOTTOM + 18, f"{value:g}", LABEL, 'text-anchor="middle"')
    for value in ticks(low, high, 7):
        picture.line(LEFT, y(value), WIDTH - RIGHT, y(value), GRID)
        picture.text(LEFT - 8, y(value) + 4, f"{value:.2f}".rstrip("0").rstrip("."), LABEL, 'text-anchor="end"')
    picture.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "seconds of training on the CPU (start, compilation and evaluation not counted)",
                 LABEL, 'text-anchor="middle"')
    picture.text(LEFT, 26, "WikiText-2, validation loss (nats a token)", TITLE, 'font-weight="600" font-size="15"')
    picture.line(LEFT, y(goal), WIDTH - RIGHT, y(goal), TWIN, 'stroke-dasharray="5 4" opacity="0.7"')
    course(twin["course"], TWIN, 2.2)
    for run in courses:
        main = reached is not None and run["fraction"] == reached["fraction"]
        course(run["course"], BRISK, 2.2 if main else 1, "" if main else 'opacity="0.35"')
    for row in rows:
        picture.circle(x(row["train_seconds"]), y(min(row["validation_loss"], high)), 3.5, BRISK)
    picture.circle(x(twin["train_seconds"]), y(goal), 4.5, TWIN)
    if reached is not None:
        at = x(reached["train_seconds"])
        picture.line(at, y(goal), at, HEIGHT - BOTTOM, BRISK, 'stroke-dasharray="3 3"')
        picture.circle(at, y(reached["validation_loss"]), 5.5, BRISK)
        picture.text(at + 8, HEIGHT - BOTTOM - 8, f'{reached["train_seconds"]:.0f} s, {reached["time_ratio"]:.2f}x the time', BRISK,
                     'font-weight="600"')
    picture.text(x(twin["train_seconds"]), y(goal) + 20, f'PyTorch, compiled, AdamW: {goal:.2f} in {twin["train_seconds"]:.0f} s', TWIN,
                 'text-anchor="end" font-weight="600"')
    last = rows[-1]
    place = 'text-anchor="end"' if x(last["train_seconds"]) > WIDTH / 2 else ""
    picture.text(x(last["train_seconds"]) + (-8 if place else 10), y(min(last["validation_loss"], high)) + (18 if place else -14),
                 f'brisk, default recipe: {last["validation_loss"]:.2f} after {last["fraction"]:g} epoch', BRISK,
                 f'{place} font-weight="600"')
    return str(picture)
