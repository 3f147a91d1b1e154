"""The plot of one sweep: a panel for time and one for memory, both axes logarithmic, so that a power is a straight line."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from svg import GRID, LABEL, LINE, MEASURED, TITLE, Picture, Scale, logarithmic_ticks  # noqa: E402

WIDTH, HEIGHT = 880, 370
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 62, 50
LEGEND_ROW, LETTER = 18, 6.7  # heights and widths of its words
COLOURS = [MEASURED, LINE, "#2b8a3e", "#862e9c"]
LEAST_SPAN = 5  # of an axis, as a factor: what is flat should look flat


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def frame(values):
    """The lowest and highest value of an axis."""
    low, high = min(values) / 1.2, max(values) * 1.2
    short = max(1.0, LEAST_SPAN / (high / low)) ** 0.5
    return low / short, high * short


def between(first, last, count=60):
    return [first * (last / first) ** (i / count) for i in range(count + 1)]


def entries(panel):
    """The legend: (words, colour of their dot, none for the line), row by row."""
    most = WIDTH / 2 - LEFT - RIGHT
    rows, at = [[]], 0
    for words, colour in [(series.name, colour) for series, colour in zip(panel.series, COLOURS)] + [("theory", None)]:
        wide = (13 if colour else 26) + LETTER * len(words) + 14
        if at + wide > most + 14:
            rows.append([])
            at = 0
        rows[-1].append((at, words, colour))
        at += wide
    return rows


def draw_legend(picture, rows, left, line_colour):
    for row, y in zip(rows, range(44, 1000, LEGEND_ROW)):
        for at, words, colour in row:
            if colour:
                picture.circle(left + at + 4, y, 4, colour)
            else:
                picture.line(left + at, y, left + at + 20, y, line_colour, 'stroke-width="1.6" stroke-dasharray="6 4"')
            picture.text(left + at + (13 if colour else 26), y + 4, words, LABEL, 'font-size="12"')


def draw_panel(picture, panel, begin, top, values, x_name):
    left, right, bottom = begin + LEFT, begin + WIDTH / 2 - RIGHT, HEIGHT - BOTTOM
    first, last = min(values), max(values)
    course = between(first, last)
    everything = [y for s in panel.series for y in [*s.lowest.values(), *s.highest.values(), *map(s.line, course)]]
    x = Scale(first / 1.1, last * 1.1, left, right, logarithmic=True)
    y = Scale(*frame(everything), bottom, top, logarithmic=True)
    picture.text(left, 26, f"{panel.title}, {panel.unit}", TITLE, 'font-weight="600" font-size="15"')
    for value in values:
        picture.line(x(value), top, x(value), bottom, GRID)
        picture.text(x(value), bottom + 18, f"{value:g}", LABEL, 'text-anchor="middle"')
    for value in logarithmic_ticks(y.low, y.high, 7):
        picture.line(left, y(value), right, y(value), GRID)
        picture.text(left - 8, y(value) + 4, number(value), LABEL, 'text-anchor="end"')
    picture.text((left + right) / 2, HEIGHT - 12, x_name, LABEL, 'text-anchor="middle"')
    single = len(panel.series) == 1
    for series, colour in zip(panel.series, COLOURS):
        picture.polyline([(x(value), y(series.line(value))) for value in course], LINE if single else colour, 1.6,
                         'stroke-dasharray="6 4"')
        picture.polyline([(x(value), y(middle)) for value, middle in series.measured.items()], colour, 1, 'opacity="0.4"')
        for value, middle in series.measured.items():
            picture.line(x(value), y(series.lowest[value]), x(value), y(series.highest[value]), colour, 'stroke-width="1.5" opacity="0.6"')
            picture.circle(x(value), y(middle), 4, colour)
    draw_legend(picture, entries(panel), left, LINE if single else LABEL)


def draw(panels, x_name, values):
    picture = Picture(WIDTH, HEIGHT, f"Time and memory against {x_name}: measured, and the theoretical line")
    top = TOP + LEGEND_ROW * (max(len(entries(panel)) for panel in panels) - 1)
    for place, panel in enumerate(panels):
        draw_panel(picture, panel, place * WIDTH / 2, top, values, x_name)
    return str(picture)
