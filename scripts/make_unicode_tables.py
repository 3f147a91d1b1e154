#!/usr/bin/env python3
"""Writes src/text/unicode_tables.inc: the ranges of code points that are letters (L*), numbers (N*) and white space.

    python3 scripts/make_unicode_tables.py > src/text/unicode_tables.inc

The categories are those of this Python's unicodedata; its Unicode version is noted in the output.
"""
import sys
import unicodedata

LAST_CODE_POINT = 0x10FFFF


def is_letter(code_point):
    return unicodedata.category(chr(code_point)).startswith("L")


def is_number(code_point):
    return unicodedata.category(chr(code_point)).startswith("N")


def is_space(code_point):
    # Unicode's White_Space property. str.isspace() adds the four separators U+001C to U+001F, which \s does not match.
    return chr(code_point).isspace() and not 0x1C <= code_point <= 0x1F


def ranges(belongs):
    found = []
    for code_point in range(LAST_CODE_POINT + 1):
        if not belongs(code_point):
            continue
        if found and found[-1][1] == code_point - 1:
            found[-1][1] = code_point
        else:
            found.append([code_point, code_point])
    return found


def write_table(name, belongs):
    table = ranges(belongs)
    print(f"constexpr CodePointRange {name}[] = {{")
    line = "   "
    for first, last in table:
        entry = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(entry) > 118:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")


def main():
    print(f"// Unicode {unicodedata.unidata_version}. Written by scripts/make_unicode_tables.py; do not edit.")
    print("// clang-format off")
    write_table("kLetterRanges", is_letter)
    write_table("kNumberRanges", is_number)
    write_table("kSpaceRanges", is_space)
    print("// clang-format on")


if __name__ == "__main__":
    sys.exit(main())
