#!/usr/bin/env python3
"""Writes the tables of src/base/text and src/text/unicode: unicode_tables.inc (categories, case), case_context_tables.inc
(final sigmas), grapheme_tables.inc and normalization_tables.inc (NFC and the others).

    python3 -m venv venv && venv/bin/pip install unicodedata2==16.0.0 tokenizers regex
    venv/bin/python scripts/make_unicode_tables.py src/text

Unicode 16 is what the regular expressions of Hugging Face's tokenizers library know. Its normalizers and its
punctuation are of older versions, so what they do not know is asked of the library and left out: the ids of a text
have to be the same here and there.
"""
import string
import sys

import regex
import unicodedata2 as unicodedata
from tokenizers import normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
WIDTH = 118


def ranges(values):
    """(first, last, value) of runs of code points that have the same value; None is left out."""
    found = []
    for code_point in CODE_POINTS:
        value = values(code_point)
        if value is None or value is False:
            continue
        if found and found[-1][1] == code_point - 1 and found[-1][2] == value:
            found[-1][1] = code_point
        else:
            found.append([code_point, code_point, value])
    return found


def write_entries(out, declaration, entries):
    out.write(f"constexpr {declaration}[] = {{\n")
    line = "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            out.write(line + "\n")
            line = "   "
        line += f" {entry},"
    out.write(line + "\n};\n")


def hexadecimal(*numbers):
    return ", ".join(f"0x{number:X}" for number in numbers)


def write_ranges(out, name, belongs):
    write_entries(out, f"CodePointRange {name}", [f"{{{hexadecimal(a, b)}}}" for a, b, _ in ranges(belongs)])


def category(code_point):
    value = unicodedata.category(chr(code_point))
    return None if value == "Cn" else value


def is_space(code_point):
    # Unicode's White_Space property. str.isspace() adds the four separators U+001C to U+001F, which \s does not match.
    return chr(code_point).isspace() and not 0x1C <= code_point <= 0x1F


def is_library_punctuation(code_point, pre_tokenizer=pre_tokenizers.Punctuation("isolated")):
    may_be = (category(code_point) or "").startswith("P") or chr(code_point) in string.punctuation
    return (may_be or code_point > 0x80) and len(pre_tokenizer.pre_tokenize_str("a" + chr(code_point) + "a")) == 3


def is_library_mark(code_point, normalizer=normalizers.StripAccents()):
    return code_point > 0x80 and normalizer.normalize_str(chr(code_point)) == ""


def bert_normalizer(**what):
    nothing = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**(nothing | what))


def is_bert_mark(code_point, normalizer=bert_normalizer(strip_accents=True)):
    return code_point > 0x80 and normalizer.normalize_str(chr(code_point)) == ""


def is_bert_control(code_point, normalizer=bert_normalizer(clean_text=True)):
    return normalizer.normalize_str(chr(code_point)) == ""


def is_other_word(code_point, pre_tokenizer=pre_tokenizers.Whitespace()):
    """In the library's \\w, but no letter, mark, number or connector."""
    value = category(code_point)
    if value is None or value[0] in "LM" or value in ("Nd", "Nl", "Pc"):
        return False
    return len(pre_tokenizer.pre_tokenize_str("a" + chr(code_point) + "a")) == 1


def lowercase_entries(normalizer=normalizers.Lowercase()):
    """{first, last, stride, distance to the lower case}; not U+0130, whose lower case is two characters."""
    entries = []
    for code_point in CODE_POINTS:
        lower = normalizer.normalize_str(chr(code_point))
        if lower == chr(code_point) or len(lower) != 1:
            continue
        distance = ord(lower) - code_point
        last = entries[-1] if entries else None
        if last and last[3] == distance:
            gap = code_point - last[1]
            if gap <= 2 and (last[0] == last[1] or last[2] == gap):
                last[1], last[2] = code_point, gap
                continue
        entries.append([code_point, code_point, 1, distance])
    return [f"{{{hexadecimal(first, last)}, {stride}, {distance}}}" for first, last, stride, distance in entries]


def write_categories(out):
    values = ranges(category)
    write_entries(out, "CategoryRange kCategoryRanges",
                  [f"{{{hexadecimal(first, last)}, {value}}}" for first, last, value in values])
    write_ranges(out, "kSpaceRanges", is_space)
    out.write("// What \\w matches in addition to letters, marks, decimal and letter numbers and connectors.\n")
    write_ranges(out, "kOtherWordRanges", is_other_word)
    out.write("// What the library's Punctuation splits at, and what its StripAccents removes.\n")
    write_ranges(out, "kLibraryPunctuationRanges", is_library_punctuation)
    write_ranges(out, "kLibraryMarkRanges", is_library_mark)
    out.write("// What its BertNormalizer removes as accents and as control characters.\n")
    write_ranges(out, "kBertMarkRanges", is_bert_mark)
    write_ranges(out, "kBertControlRanges", is_bert_control)
    write_entries(out, "LowercaseRange kLowercaseRanges", lowercase_entries())


def literal(text):
    escaped = ""
    for character in text:
        code_point = ord(character)
        if character in '"\\':
            escaped += "\\" + character
        elif 0x20 <= code_point < 0x7F:
            escaped += character
        else:
            assert code_point >= 0xA0
            escaped += f"\\u{code_point:04X}" if code_point < 0x10000 else f"\\U{code_point:08X}"
    return f'"{escaped}"'


def write_normalization(out):
    library = {form: getattr(normalizers, form)() for form in ("NFD", "NFKD")}
    canonical, compatible = [], []
    for code_point in CODE_POINTS:
        text = chr(code_point)
        if 0xAC00 <= code_point <= 0xD7A3 or not category(code_point):  # Hangul syllables are computed
            continue
        decomposed = unicodedata.normalize("NFD", text)
        if decomposed != text and library["NFD"].normalize_str(text) == decomposed:
            parts = [int(part, 16) for part in unicodedata.decomposition(text).split()]
            composes = len(parts) == 2 and unicodedata.normalize("NFC", decomposed) == text
            canonical.append(f"{{{hexadecimal(code_point, *(parts + [0])[:2])}, {int(composes)}}}")
        fully = unicodedata.normalize("NFKD", text)
        if fully != decomposed and library["NFKD"].normalize_str(text) == fully:
            compatible.append(f"{{0x{code_point:X}, {literal(fully)}}}")
    write_entries(out, "CanonicalDecomposition kCanonicalDecompositions", canonical)
    write_entries(out, "CompatibilityDecomposition kCompatibilityDecompositions", compatible)
    def known_class(code_point):
        """Marks that the library does not know stay where they are among others."""
        mark, form = chr(code_point), library["NFD"]
        moves = any(form.normalize_str("a" + pair) != "a" + pair for pair in (mark + "\u0334", "\u0345" + mark))
        return unicodedata.combining(mark) if moves else None

    classes = ranges(lambda code_point: known_class(code_point) if unicodedata.combining(chr(code_point)) else None)
    write_entries(out, "CombiningClassRange kCombiningClassRanges",
                  [f"{{{hexadecimal(first, last)}, {value}}}" for first, last, value in classes])


def is_cased(code_point):
    """Before a capital sigma, it makes that a final one: Unicode's Cased, but for what is Case_Ignorable as well."""
    return (chr(code_point) + "\u03a3").lower().endswith("\u03c2")


def is_case_ignorable(code_point):
    return not is_cased(code_point) and ("A" + chr(code_point) + "\u03a3").lower().endswith("\u03c2")


def write_case_context(out):
    """What decides how a capital sigma is lowercased. Of the Unicode version of this Python, whose str.lower() it is."""
    out.write("// What is a letter of a case, and what is passed over when one is looked for (both: the latter).\n")
    for name, belongs in (("kCasedRanges", is_cased), ("kCaseIgnorableRanges", is_case_ignorable)):
        write_entries(out, f"CaseContextRange {name}", [f"{{{hexadecimal(a, b)}}}" for a, b, _ in ranges(belongs)])


def write_graphemes(out):
    """Grapheme_Cluster_Break, with what the rules of emoji and Indic conjuncts ask for. Hangul syllables are computed."""
    classes = [("kLinker", r"\p{InCB=Linker}"), ("kConsonant", r"\p{InCB=Consonant}"), ("kPictographic", r"\p{Extended_Pictographic}")]
    classes += [(f"k{name}", rf"\p{{GCB={value}}}") for name, value in (
        ("Cr", "CR"), ("Lf", "LF"), ("Control", "Control"), ("Zwj", "ZWJ"), ("Regional", "Regional_Indicator"), ("Prepend", "Prepend"),
        ("SpacingMark", "SpacingMark"), ("L", "L"), ("V", "V"), ("T", "T"))]
    # U+200C alone extends a grapheme and ends an Indic conjunct.
    classes += [("kSpacingExtend", r"(?!\p{InCB=Extend})\p{GCB=Extend}"), ("kExtend", r"\p{GCB=Extend}")]
    classes = [(name, regex.compile(pattern)) for name, pattern in classes]

    def grapheme_class(code_point):
        if 0xAC00 <= code_point <= 0xD7A3:
            return None
        return next((name for name, pattern in classes if pattern.match(chr(code_point))), None)

    write_entries(out, "GraphemeRange kGraphemeRanges", [f"{{{hexadecimal(a, b)}, {name}}}" for a, b, name in ranges(grapheme_class)])


def main():
    directory = sys.argv[1]
    for name, write in (("unicode_tables", write_categories), ("normalization_tables", write_normalization),
                        ("case_context_tables", write_case_context), ("grapheme_tables", write_graphemes)):
        with open(f"{directory}/{name}.inc", "w", encoding="utf-8") as out:
            out.write(f"// Unicode {unicodedata.unidata_version}. "
                      "Written by scripts/make_unicode_tables.py; do not edit.\n// clang-format off\n")
            write(out)
            out.write("// clang-format on\n")


if __name__ == "__main__":
    sys.exit(main())
