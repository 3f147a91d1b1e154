"""Plots as SVG, in plain Python: what the plots of bench/ share. They read on light and dark pages.

    picture = Picture(760, 420, "Loss against seconds")
    x, y = Scale(0, 60, 64, 736), Scale(4.5, 6, 368, 46)            # values, and their places
    picture.line(x(0), y(5), x(60), y(5), GRID)
    picture.polyline([(x(s), y(loss)) for s, loss in course], "#d9480f", 2.2)
    open("loss.svg", "w").write(str(picture))
"""
import html
import math

GRID, LABEL, TITLE = "#e9ecef", "#495057", "#212529"
MEASURED, LINE = "#d9480f", "#1971c2"


def ticks(low, high, count):
    """Round numbers from low to high, about `count` of them."""
    raw = (high - low) / count
    magnitude = 10 ** len(str(int(raw))) / 10 if raw >= 1 else 0.01
    step = next(s for s in (m * f for m in (magnitude, 10 * magnitude, 100 * magnitude) for f in (1, 2, 5)) if s >= raw)
    first = int(low / step) * step
    values = [first + i * step for i in range(int((high - first) / step) + 2)]
    return [value for value in values if low - 1e-9 <= value <= high + 1e-9]


def logarithmic_ticks(low, high, count):
    """Round numbers from low to high, equally far apart on a logarithmic scale or nearly so, no more than `count`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,)):
        values = [digit * 10.0**power for power in powers for digit in digits]
        values = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(values) <= count:
            return values
    return values[:: math.ceil(len(values) / count)]


class Scale:
    """Values from low to high, placed from begin to end."""

    def __init__(self, low, high, begin, end, logarithmic=False):
        self.low, self.high, self.begin, self.end = low, high, begin, end
        self.of = math.log if logarithmic else float

    def __call__(self, value):
        share = (self.of(value) - self.of(self.low)) / (self.of(self.high) - self.of(self.low))
        return self.begin + (self.end - self.begin) * share


class Picture:
    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      'font-family="system-ui, sans-serif" font-size="13" role="img">',
                      f"<title>{html.escape(title)}</title>", f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>']

    def line(self, x1, y1, x2, y2, colour, more=""):
        self.parts.append(f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>')

    def polyline(self, points, colour, width, more=""):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width}" {more}/>')

    def circle(self, x, y, radius, colour, more=""):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" {more}/>')

    def text(self, x, y, words, colour, more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" {more}>{html.escape(words, quote=False)}</text>')

    def __str__(self):
        return "\n".join(self.parts + ["</svg>", ""])
