#include "base/text/printable.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/terminal/terminal.h"

namespace brisk {
namespace {

TEST(Printable, LeavesTextsAsTheyAre) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("layers.0.weight"), "layers.0.weight");
  EXPECT_EQ(printable("négatif, 良い, می‌خواهم, 👩‍🚀"),
            "négatif, 良い, می‌خواهم, 👩‍🚀");
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable(std::string("a\0b\n\t\r\x7f", 7)), "a\\x00b\\n\\t\\r\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m")
      << "a control sequence of one character";
}

TEST(Printable, EscapesWhatHidesOrTurnsText) {
  EXPECT_EQ(printable("safe\u202Egnp.exe"), "safe\\u{202e}gnp.exe");
  EXPECT_EQ(printable("a\u2028b\u200Bc\uFEFF"), "a\\u{2028}b\\u{200b}c\\u{feff}");
  EXPECT_EQ(printable("\U000E0041"), "\\u{e0041}");
}

TEST(Printable, EscapesBytesThatAreNoText) {
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
}

TEST(Printable, CutsAndTellsTheSize) {
  EXPECT_EQ(printable(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(printable(std::string(81, 'a')), std::string(70, 'a') + "... (81 B)");
  EXPECT_EQ(printable(std::string(10 << 20, 'a')), std::string(66, 'a') + "... (10.0 MiB)");
  EXPECT_EQ(printable(printable(std::string(10 << 20, 'a'))), printable(std::string(10 << 20, 'a')));
  EXPECT_EQ(printable("0123456789", 8), "01234...");
  EXPECT_EQ(printable("良良良良良", 8), "良良...") << "two columns each";
  std::string marks = "a";
  for (int i = 0; i < 10000; ++i) marks += "\u0301";  // which take no column
  EXPECT_LT(printable(marks).size(), 1000u);
}

TEST(Printable, InQuotesEscapesThem) { EXPECT_EQ(in_quotes("a\"b\x1b"), "\"a\\\"b\\x1b\""); }

TEST(Printable, OfAWholeMessageKeepsItsLines) {
  EXPECT_EQ(without_controls("a\n\tb\r\x1b]0;c\x07"), "a\n\tb\\r\\x1b]0;c\\x07");
}

TEST(Printable, OfPiecesWaitsForWholeCharacters) {
  ControlFilter filter;
  std::string shown;
  for (const char byte : std::string("é良👩\x1b[2J\xc2\x9b\xff.")) shown += filter.next(std::string(1, byte));
  EXPECT_EQ(shown + filter.rest(), "é良👩\\x1b[2J\\x9b\\xff.");
  EXPECT_EQ(filter.next("a\xe8"), "a");
  EXPECT_EQ(filter.rest(), "\\xe8");
}

TEST(Messages, ShowWhatIsInQuotationMarksInOneLineOfAReadableLength) {
  const std::string name = "\x1b[31m" + std::string(10 << 20, 'a'), path = "/" + std::string(200, 'p');
  const std::string shown = "\\x1b[31m" + std::string(58, 'a') + "... (10.0 MiB)";
  EXPECT_EQ(format_message("{}: '{}' twice", path, name), path + ": '" + shown + "' twice");
  EXPECT_EQ(format_message("{}: \"{}\" of {}", path, name, 3), path + ": \"" + shown + "\" of 3");
  EXPECT_EQ(format_message("{{'{1}'}} {0}", "a\x1b", "b\n"), "{'b\\n'} a\\x1b");
  EXPECT_EQ(format_message("{:>4}|'{:<6}'", "ab", "cd"), "  ab|'cd    '");
  EXPECT_EQ(format_message("{} {} {}", true, 'c', 2.5), "true c 2.5");
}

TEST(Messages, CutStringsThatNobodyReads) {
  const std::string message = format_message("{} is long", std::string(10 << 20, 'x'));
  EXPECT_LT(message.size(), 5000u);
  EXPECT_TRUE(message.ends_with("... (10.0 MiB) is long")) << message.substr(message.size() - 40);
}

TEST(Messages, OfAUserErrorAreSafeToPrintHoweverItWasMade) {
  EXPECT_STREQ(UserError("a\x1b[2J\nb\xff").what(), "a\\x1b[2J\nb\\xff");
  EXPECT_LT(std::string(UserError(std::string(50 << 20, 'x')).what()).size(), size_t{70} << 10);
}

TEST(Messages, ATablesCellsAreOnOneLineEach) {
  Table table({"name\x1b"});
  table.add_row({"a\nb\x1b[2J"});
  EXPECT_EQ(table.text(), "name\\x1b\n-----------\na\\nb\\x1b[2J\n");
}

}  // namespace
}  // namespace brisk
