"""docs/growth.md: the plots, the tables, and where measurement leaves the line."""
import statistics
import textwrap

from panels import anchor_of, panels, runs_of, time_ratio

NEAR = 1.15  # a factor that counts as being on the line

X_NAMES = {"width": "width of the model", "layers": "layers", "vocabulary": "entries of the vocabulary",
           "length": "tokens of a sequence", "cores": "cores", "corpus": "megabytes of text"}

THEORY = {
    "width": "Time: FLOP, `6 (12 L D² + V D) + 6 L T D` per token, so between D (the output product) and D² (the layers). "
             "Memory: parameters grow the same way, what is stored for backward with D.",
    "layers": "Time and memory: a constant (the output product, the embedding, the logits) and a share for each layer.",
    "vocabulary": "Time: a constant and `6 V D` per token. Memory: 16 bytes for each of `V D` parameters and the logits of one chunk of rows, which are limited to "
                  "104 MiB: that is the bend in the line.",
    "length": "The tokens of a step stay the same, so only attention grows: `6 L T D` per token. Memory: nothing grows but the table of "
              "positions; attention never holds a T × T matrix.",
    "cores": "Time: one core's, divided by the number of cores. Memory: the same.",
    "corpus": "A job is started three times: from nothing, so that it learns a vocabulary and writes the token file; with the vocabulary there; with the tokens "
              "there, too. Time: a constant per start plus a part proportional to the text; the last start and the steps after it do not depend on the text. "
              "Memory: a vocabulary is learned from text held in memory (all of it up to 128 MiB, beyond that a sample of that size). The token file is "
              "memory-mapped: its pages, which the system may reclaim at any time, count as memory of the process. Without them, nothing should grow."}

GROUPS = {"products": ["forward_linear", "backward_linear", "loss"], "attention": ["forward_attention", "backward_attention"],
          "the optimizer": ["optimizer", "clipping"], "norms": ["forward_norm", "backward_norm"],
          "the embedding": ["forward_embedding", "backward_embedding"],
          "the rest of the loop": ["data_wait", "copy", "logging", "other", "forward_elementwise", "backward_elementwise"]}

# Likely reasons, where the measurement is steeper than the line and where it is flatter. The milliseconds before them are facts.
REASONS = {("products", "width"): ("wide weights leave the caches", "narrow products reach less of the peak than wide ones"),
           ("products", "layers"): ("the activations of more layers leave the caches before backward comes",
                                    "a FLOP of the output product, which has the softmax in it, costs more than one of a layer"),
           ("products", "vocabulary"): ("the softmax is in the output product, and its logits go through memory",
                                        "the output product is large and reaches more of the peak than those of the layers"),
           ("products", "length"): ("the products are the same at every length, so this is noise",) * 2,
           ("products", "cores"): ("each thread has less of a product, and all wait for the last one", "more cores have more cache"),
           ("attention", "length"): ("a FLOP of attention costs more than one of a product: there is the softmax, and half of each block on the diagonal is masked",
                                     "short sequences do not fill attention's blocks"),
           ("attention", ""): ("a FLOP of attention costs more than one of a product",) * 2,
           ("the optimizer", "cores"): ("it is bound by the memory, which all cores share",) * 2,
           ("the optimizer", ""): ("it moves bytes of parameters, which the FLOP count leaves out",) * 2,
           ("norms", ""): ("they move bytes, which the FLOP count leaves out",) * 2,
           ("the embedding", ""): ("it moves bytes, which the FLOP count leaves out",) * 2,
           ("the rest of the loop", "cores"): ("it is not shared among the cores",) * 2,
           ("the rest of the loop", ""): ("it does not depend on FLOP",) * 2}

# Likely reasons for more than the line has; for less there is none but in the memory of a first start.
CORPUS_REASONS = {("time", "first start"): "merges cost about the same for any text, so a small text is relatively expensive",
                  ("time", "vocabulary there"): "files are opened, hashed and checked whatever their size",
                  ("time", "tokens there"): "the text is hashed, the token file checked and its sequences are listed at each start",
                  ("time", "10 steps"): "steps do not depend on the corpus, so this is noise, or pages read for the first time",
                  ("peak memory", "vocabulary there"): "a small text has relatively many blocks in flight",
                  ("peak memory", "less mapped files"): "the table of sequences, 16 bytes each, is held up to a million of them"}
CORPUS_REASONS_LESS = {("peak memory", "first start"): "the sample and the token file need not be there at the same time"}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def phase_ms(runs):
    """Milliseconds of a median step, by group: the mean of the rounds' shares, times the median step."""
    step = statistics.median(run["step_ms"] for run in runs)
    shares = {}
    for group, phases in GROUPS.items():
        shares[group] = statistics.mean(sum(run["ledger"].get(phase, 0) for phase in phases) / sum(run["ledger"].values()) for run in runs)
    return {group: share * step for group, share in shares.items()}


def why(results, sweep, value):
    """Which part of a step makes most of the difference between the measurement and the line, and why."""
    runs, anchor = runs_of(results, sweep), anchor_of(results, sweep)
    factor = time_ratio(results, sweep, value, anchor)
    here, there = phase_ms(runs[value]), phase_ms(runs[anchor])
    difference = {group: here[group] - there[group] * factor for group in GROUPS}
    more = sum(difference.values()) > 0
    group = (max if more else min)(difference, key=difference.get)
    steeper, flatter = REASONS.get((group, sweep)) or REASONS[group, ""]
    return (f"{group} {'take' if group in ('products', 'norms') else 'takes'} {number(here[group])} ms, the line predicts {number(there[group] * factor)}, which is most of "
            f"the difference (likely: {steeper if more == (value > anchor) else flatter})")


def ranges(values, near):
    """The values that are near, as words: "128 to 512 and 2048"."""
    words, run = [], []
    for value in [*values, None]:
        if value is not None and value in near:
            run.append(value)
        elif run:
            words.append(f"{run[0]:g}" if len(run) == 1 else f"{run[0]:g} to {run[-1]:g}")
            run = []
    return " and ".join(words)


def departure(series, name, explain=lambda value: ""):
    """A sentence: where the measurement is on the line, where it is farthest from it."""
    values = list(series.measured)
    ratios = {value: series.ratio(value) for value in values}
    near = [value for value in values if 1 / NEAR <= ratios[value] <= NEAR]
    percent = f"{100 * (NEAR - 1):.0f} %"
    if len(near) == len(values):
        return f"{name}: within {percent} of the line everywhere."
    distance = {value: max(ratio, 1 / ratio) for value, ratio in ratios.items()}
    farthest = max(values, key=distance.get)
    inside = f"within {percent} of the line at {ranges(values, near)}; " if near else ""
    because = explain(farthest)
    return f"{name}: {inside}farthest from it at {farthest:g}, {ratios[farthest]:.2f} times the line" + (f"; {because}." if because else ".")


def corpus_reason(panel, series, value):
    reasons = CORPUS_REASONS if series.ratio(value) > 1 else CORPUS_REASONS_LESS
    reason = reasons.get((panel.title, series.name))
    return f"likely: {reason}" if reason else ""


def remarks(results, sweep):
    time, memory = panels(results, sweep)
    if sweep == "corpus":
        return [departure(series, f"{panel.title.capitalize()}, {series.name}", lambda value, p=panel, s=series: corpus_reason(p, s, value))
                for panel in (time, memory) for series in panel.series]
    held = memory.series[0]
    extra = statistics.median(held.measured[value] - held.line(value) for value in held.measured)
    lines = [departure(time.series[0], "Time", lambda value: why(results, sweep, value)),
             departure(held, "Memory", lambda value: f"in addition to the line there are about {number(extra)} MiB for the program, its threads, packed operands and the tokens")]
    if sweep == "cores":
        runs = runs_of(results, sweep)
        peak = {value: statistics.median(run["peak_gflops"] for run in each) for value, each in runs.items()}
        first, last = min(runs), max(runs)
        if first == last:
            return lines
        faster = time.series[0].measured[first] / time.series[0].measured[last]
        lines.append(f"{last} cores are {faster:.1f} times as fast as {first:g}; the multiply-add rate in registers, measured by the same program, grows "
                     f"{peak[last] / peak[first]:.1f} times.")
    return lines


def theory(results, sweep):
    return THEORY[sweep] + (f" The text: lines drawn from {results['text']}, seed {results['seed']}." if sweep == "corpus" else "")


def shape_table(results, sweep):
    time, memory = (panel.series[0] for panel in panels(results, sweep))
    runs = runs_of(results, sweep)
    rows = [f"| {X_NAMES[sweep]} | ms per step | line | ratio | µs per token | utilisation | peak memory, MiB | planned | line | ratio |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for value, each in runs.items():
        anchored = " (anchor)" if value == time.anchor else ""
        rows.append(f"| {value:g}{anchored} | {number(time.measured[value])} | {number(time.line(value))} | {time.ratio(value):.2f} | "
                    f"{number(1e3 * time.measured[value] / results['tokens'])} | {100 * statistics.median(run['utilisation'] for run in each):.1f} % | "
                    f"{number(memory.measured[value])} | {number(statistics.median(run['planned_memory_bytes'] for run in each) / (1 << 20))} | "
                    f"{number(memory.line(value))} | {memory.ratio(value):.2f} |")
    return rows


def corpus_table(results):
    rows = []
    for panel in panels(results, "corpus"):  # time, then memory: side by side they are too wide
        heads = [f"{panel.title}, {series.name}, {panel.unit}" for series in panel.series]
        rows += [f"| {X_NAMES['corpus']} | " + " | ".join(heads) + " |", "|---:|" + "---:|" * len(heads)]
        for value in runs_of(results, "corpus"):
            cells = [f"{number(series.measured[value])} ({series.ratio(value):.2f})" for series in panel.series]
            rows.append(f"| {value:g} | " + " | ".join(cells) + " |")
        rows.append("")
    return rows + ["In brackets: times the line."]


def wrapped(line):
    """Prose in lines of 140 characters; tables, headings and pictures as they are."""
    if line.startswith(("|", "#", "!", "`")):
        return line
    return textwrap.fill(line, 140, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def page(results):
    base, machine = results["base"], results["machine"]
    lines = ["# Growth", "",
             "How time and memory of training grow, each next to its theoretical line. One command measures, draws and writes this page:", "",
             "```sh", results["command"], "```", "",
             f"Machine: {machine['cpu']}, {machine['cores']} cores ({machine['isa']} kernels), {machine['memory_total_bytes'] / 2**30:.0f} GiB, {machine['system'].split()[0]}. "
             f"{results['date']}, brisk {results['version']}; {results['rounds']} interleaved round{'s' if results['rounds'] > 1 else ''}, "
             f"medians (the bars in the plots are the lowest and highest round), "
             f"{results['minutes']:.1f} minutes in all. Each point is a process of its own.", "",
             f"Unless varied: {base['width']} wide, {base['layers']} layers, a vocabulary of {base['vocabulary']}, {base['length']} tokens per sequence, "
             f"{results['tokens']} tokens per step, {base['cores']} core{'s' if base['cores'] > 1 else ''}, {results['precision']}, AdamW (`brisk bench lm`).", "",
             "The time line is FLOP divided by the rate reached at one anchor point. FLOP per token are `6 (12 L D² + V D) + 6 L T D`: 6 for each weight of a product and "
             "causal attention. The memory line is not anchored: "
             + ("18 bytes per parameter (master, gradient and two moments in fp32, a copy in bf16) and `N (36 L D + 8 D)`" if results["precision"] == "bf16" else
                "16 bytes per parameter (master, gradient and two moments in fp32) and `4 N (16 L D + 3 D)`")
             + " bytes that N rows of a micro-batch store for backward, and the logits of one chunk of the loss, `4 · 1024 V` bytes and at most 104 MiB. "
               "*Planned* is what brisk announces before the first step. Peak memory is VmHWM of the process."]
    for sweep in results["sweeps"]:
        lines += ["", f"## {sweep.capitalize()}", "", f"![time and memory against {X_NAMES[sweep]}](growth/{sweep}.svg)", "", theory(results, sweep), ""]
        lines += [f"- {remark}" for remark in remarks(results, sweep)]
        lines += ["", *(corpus_table(results) if sweep == "corpus" else shape_table(results, sweep))]
    return "\n".join([wrapped(line) for line in lines] + [""])
