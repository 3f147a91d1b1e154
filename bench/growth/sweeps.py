"""The six sweeps: what is varied, and over which values. All but the corpus start from one shape, where their lines are anchored."""
from theory import Shape

BASE = {"width": 256, "layers": 4, "vocabulary": 8192, "length": 128}
QUICK_BASE = {"width": 64, "layers": 2, "vocabulary": 1024, "length": 64}
TOKENS, QUICK_TOKENS = 4096, 1024  # of a step
MEGABYTE = 1_000_000

SWEEPS = {"width": [32, 64, 128, 256, 512, 1024], "layers": [1, 2, 4, 6, 8, 12],
          "vocabulary": [1024, 4096, 8192, 16384, 32768, 65536], "length": [32, 128, 256, 512, 1024, 2048],
          "cores": [], "corpus": [1, 2, 4, 8, 16, 32, 64]}
QUICK_SWEEPS = {"width": [32, 64, 128], "layers": [1, 2, 4], "vocabulary": [512, 1024, 4096], "length": [32, 64, 256],
                "cores": [], "corpus": [0.5, 1, 2]}


def core_counts(most):
    """1, 2, 4, ... and all of them; a few more where there are many."""
    counts = {2**i for i in range(most.bit_length()) if 2**i <= most} | {most}
    if most >= 12:
        counts.add(3 * most // 4)
    return sorted(counts)


class Plan:
    """What is run: the values of each sweep, and the shape that they vary."""

    def __init__(self, names, quick, threads):
        self.base = dict(QUICK_BASE if quick else BASE, cores=threads)
        self.tokens = QUICK_TOKENS if quick else TOKENS
        self.sweeps = {name: list(values) for name, values in (QUICK_SWEEPS if quick else SWEEPS).items() if name in names}
        if "cores" in self.sweeps:
            self.sweeps["cores"] = core_counts(threads)

    def point(self, sweep, value):
        """The whole setting of one point of a sweep of shapes or cores."""
        return dict(self.base, **{sweep: value})

    def points(self):
        """Each point once, however many sweeps it is in."""
        found = []
        for sweep, values in self.sweeps.items():
            if sweep != "corpus":
                found += [point for point in (self.point(sweep, value) for value in values) if point not in found]
        return found


def shape_of(setting):
    return Shape(setting["width"], setting["layers"], setting["vocabulary"], setting["length"])
