"""The plot of validation loss against seconds of training, as one SVG that reads on light and dark pages."""

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 46, 52
BRISK, TWIN = "#d9480f", "#1971c2"


def ticks(low, high, count):
    """Round numbers from low to high, about `count` of them."""
    raw = (high - low) / count
    magnitude = 10 ** len(str(int(raw))) / 10 if raw >= 1 else 0.01
    step = next(s for s in (m * f for m in (magnitude, 10 * magnitude, 100 * magnitude) for f in (1, 2, 5)) if s >= raw)
    first = int(low / step) * step
    values = [first + i * step for i in range(int((high - first) / step) + 2)]
    return [value for value in values if low - 1e-9 <= value <= high + 1e-9]


def draw(results):
    twin, runs = results["twin"], results["brisk"]["runs"]
    rows = results["brisk"]["rows"]
    seed = results["seeds"][0]
    courses = [run for run in runs if run["seed"] == seed]
    goal, reached = twin["validation_loss"], results.get("reached")
    right = 1.04 * max([twin["train_seconds"]] + [row["train_seconds"] for row in rows])
    lowest = min([goal] + [row["validation_loss"] for row in rows])
    low, high = lowest - 0.12, goal + 1.6

    def x(seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / right

    def y(loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(loss, high)) / (high - low)

    def path(points, colour, width, more=""):
        inside = [(s, loss) for s, loss in points if loss <= high]
        coordinates = " ".join(f"{x(s):.1f},{y(loss):.1f}" for s, loss in inside)
        return f'<polyline points="{coordinates}" fill="none" stroke="{colour}" stroke-width="{width}" {more}/>'

    def text(at_x, at_y, words, more=""):
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" {more}>{words}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="system-ui, sans-serif" font-size="13" role="img">',
           "<title>Validation loss against seconds of training: brisk and compiled PyTorch</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>']
    for value in ticks(0, right, 8):
        out.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e9ecef"/>')
        out.append(text(x(value), HEIGHT - BOTTOM + 18, f"{value:g}", 'text-anchor="middle" fill="#495057"'))
    for value in ticks(low, high, 7):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e9ecef"/>')
        out.append(text(LEFT - 8, y(value) + 4, f"{value:.2f}".rstrip("0").rstrip("."), 'text-anchor="end" fill="#495057"'))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "seconds of training on the CPU (start, compilation and evaluation not counted)",
                    'text-anchor="middle" fill="#495057"'))
    out.append(text(LEFT, 26, "WikiText-2, validation loss (nats a token)", 'font-weight="600" fill="#212529" font-size="15"'))
    out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(goal):.1f}" y2="{y(goal):.1f}" stroke="{TWIN}" stroke-dasharray="5 4" opacity="0.7"/>')
    out.append(path([(p["seconds"], p["validation_loss"]) for p in twin["course"]], TWIN, 2.2))
    for run in courses:
        main = reached is not None and run["fraction"] == reached["fraction"]
        points = [(p["seconds"], p["validation_loss"]) for p in run["course"]]
        out.append(path(points, BRISK, 2.2 if main else 1, "" if main else 'opacity="0.35"'))
    for row in rows:
        out.append(f'<circle cx="{x(row["train_seconds"]):.1f}" cy="{y(row["validation_loss"]):.1f}" r="3.5" fill="{BRISK}"/>')
    out.append(f'<circle cx="{x(twin["train_seconds"]):.1f}" cy="{y(goal):.1f}" r="4.5" fill="{TWIN}"/>')
    if reached is not None:
        at = x(reached["train_seconds"])
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(goal):.1f}" y2="{HEIGHT - BOTTOM}" stroke="{BRISK}" stroke-dasharray="3 3"/>')
        out.append(f'<circle cx="{at:.1f}" cy="{y(reached["validation_loss"]):.1f}" r="5.5" fill="{BRISK}"/>')
        out.append(text(at + 8, HEIGHT - BOTTOM - 8, f'{reached["train_seconds"]:.0f} s, {reached["time_ratio"]:.2f}x the time', f'fill="{BRISK}" font-weight="600"'))
    out.append(text(x(twin["train_seconds"]), y(goal) + 20, f'PyTorch, compiled, AdamW: {goal:.2f} in {twin["train_seconds"]:.0f} s',
                    f'text-anchor="end" fill="{TWIN}" font-weight="600"'))
    last = rows[-1]
    place = 'text-anchor="end"' if x(last["train_seconds"]) > WIDTH / 2 else ""
    out.append(text(x(last["train_seconds"]) + (-8 if place else 10), y(last["validation_loss"]) + (18 if place else -14),
                    f'brisk, default recipe: {last["validation_loss"]:.2f} after {last["fraction"]:g} epoch', f'{place} fill="{BRISK}" font-weight="600"'))
    return "\n".join(out + ["</svg>", ""])
