"""The plot of the study: validation loss of MU and of the plain decoder, against tokens and against seconds, as one SVG. Broken lines:
with Muon."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from svg import GRID, LABEL, LINE as DECODER, MEASURED as MU, TITLE, Picture, Scale, ticks  # noqa: E402

WIDTH, HEIGHT, TOP, BOTTOM = 860, 400, 62, 52
PANELS = [(64, 420), (476, 832)]


def draw(results):
    picture = Picture(WIDTH, HEIGHT, "Validation loss of MU and of the plain decoder against tokens and against seconds")
    picture.text(PANELS[0][0], 26, "WikiText-2, validation loss (nats a token), each line a seed", TITLE, 'font-weight="600" font-size="15"')
    mu, decoder, timed = results["tokens"]["mu"], results["tokens"]["decoder"], results["time"]
    mu_muon, decoder_muon = results["recipe"]["mu"], results["recipe"]["decoder"]
    shown = mu + decoder + timed + mu_muon + decoder_muon
    points = [point for run in shown for point in run["course"]]
    last = [run["validation_loss"] for run in shown]
    low, high = min(last) - 0.1, min(max(point["validation_loss"] for point in points), max(last) + 1.5) + 0.05
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    broken = 'stroke-dasharray="5 4"'
    with_muon = [(mu_muon, MU, broken), (decoder_muon, DECODER, broken)]
    panels = [("tokens", 1e6, "million tokens", [(mu, MU, ""), (decoder, DECODER, ""), *with_muon]),
              ("seconds", 1, "seconds of training", [(mu, MU, ""), (timed, DECODER, ""), *with_muon])]
    for (left, right), (key, unit, label, groups) in zip(PANELS, panels):
        most = max(point[key] / unit for runs, _, _ in groups for run in runs for point in run["course"])
        x = Scale(0, 1.03 * most, left, right)
        for value in ticks(0, most, 5):
            picture.line(x(value), TOP, x(value), HEIGHT - BOTTOM, GRID)
            picture.text(x(value), HEIGHT - BOTTOM + 18, f"{value:g}", LABEL, 'text-anchor="middle"')
        for value in ticks(low, high, 7):
            picture.line(left, y(value), right, y(value), GRID)
            picture.text(left - 8, y(value) + 4, f"{value:.2f}".rstrip("0").rstrip("."), LABEL, 'text-anchor="end"')
        picture.text((left + right) / 2, HEIGHT - 12, label, LABEL, 'text-anchor="middle"')
        for runs, colour, more in groups:
            for run in runs:
                course = [(x(point[key] / unit), y(point["validation_loss"])) for point in run["course"] if point["validation_loss"] <= high]
                picture.polyline(course, colour, 1.8, more)
                picture.circle(*course[-1], 3, colour)
        for number, (name, colour) in enumerate((("MU", MU), ("plain decoder", DECODER), ("broken lines: with Muon", LABEL))):
            picture.text(right, TOP + 16 + 18 * number, name, colour, 'text-anchor="end" font-weight="600"')
    return str(picture)
