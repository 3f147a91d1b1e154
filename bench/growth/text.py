"""Text of any size, the same for the same seed: documents of lines drawn from a text.

    lines = lines_of("book.txt")                       # or made_up_lines(seed=1): words that no language has, spread as words are
    make("corpus.txt", 64_000_000, lines, seed=1)      # blank lines between documents

A larger text begins with the smaller ones, so that sizes differ in nothing else. What grows with a real text and not here is the
number of different words.
"""
import itertools
import random

WORDS, LINES = 50_000, 20_000
SYLLABLES = [a + b + c for a in ("", "b", "d", "f", "k", "l", "m", "n", "p", "r", "s", "t", "st", "tr") for b in "aeiou"
             for c in ("", "n", "r", "s", "t")]
LINES_OF_A_DOCUMENT = 8
MOST_LINES_HELD = 500_000


def made_up_words(draw):
    """All different, short ones first: common words are short."""
    words, seen, syllables = [], set(), 1
    while len(words) < WORDS:
        for _ in range(min(WORDS // 4, len(SYLLABLES) ** syllables // 2)):
            word = "".join(draw.choices(SYLLABLES, k=syllables))
            if word not in seen:
                seen.add(word)
                words.append(word)
        syllables += 1
    return words[:WORDS]


def made_up_lines(seed):
    draw = random.Random(seed)
    words = made_up_words(draw)
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(WORDS)))  # Zipf's law
    lengths = draw.choices(range(4, 40), k=LINES)
    drawn = iter(draw.choices(words, cum_weights=weights, k=sum(lengths)))
    return [" ".join(itertools.islice(drawn, length)) + "." for length in lengths]


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in itertools.islice(file, MOST_LINES_HELD) if line.strip()]
    if not lines:
        raise ValueError(f"{path}: no text in it; name a file of lines with --text")
    return lines


def make(path, size, lines, seed):
    """Writes whole documents until the file has `size` bytes or a little more; returns how many it has."""
    draw = random.Random(seed)
    written = 0
    with open(path, "wb") as file:
        while written < size:
            written += file.write(("\n".join(draw.choices(lines, k=LINES_OF_A_DOCUMENT)) + "\n\n").encode())
    return written
