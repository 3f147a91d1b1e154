#include "data/read/aligned_lines.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(const std::string& left, const std::string& right) {
  AlignedLines lines({left, right});
  Pairs pairs;
  while (lines.next()) {
    pairs.emplace_back(lines.text(0), lines.text(1));
    EXPECT_EQ(lines.number(), std::ssize(pairs));
  }
  return pairs;
}

TEST(AlignedLines, GivesTheLinesOfTheSameNumber) {
  const test::ScratchFolder folder;
  const std::string left = folder.write("left", "one\n\n three \r\nfour");
  const std::string right = folder.write("right",
                                         "\xEF\xBB\xBF"
                                         "eins\nzwei\n\n\r\n");
  EXPECT_EQ(read(left, right), (Pairs{{"one", "eins"}, {"", "zwei"}, {" three ", ""}, {"four", ""}}));
  const std::string empty = folder.write("empty", "");
  EXPECT_EQ(read(empty, empty), Pairs{});
}

TEST(AlignedLines, HoldsLinesLongerThanItsBuffer) {
  const test::ScratchFolder folder;
  const std::string line(500'000, 'x');
  const std::string left = folder.write("left", "a\n" + line + "\nb\n" + line + line);
  const std::string right = folder.write("right", "\n\n\n\n");
  EXPECT_EQ(read(left, right), (Pairs{{"a", ""}, {line, ""}, {"b", ""}, {line + line, ""}}));
}

TEST(AlignedLines, NamesTheLineWhereOneFileEnds) {
  const test::ScratchFolder folder;
  const std::string two = folder.write("two", "a\nb\n"), three = folder.write("three", "a\nb\n\n");
  const std::string empty = folder.write("empty", "");
  const auto message = [](const std::string& left, const std::string& right) {
    return test::message_of<UserError>([&] { read(left, right); });
  };
  const std::string shorter = message(two, three);
  EXPECT_TRUE(test::has(shorter, "two: the file ends with line 2, but ")) << shorter;
  EXPECT_TRUE(test::has(shorter, "three has a line 3: give ")) << shorter;
  EXPECT_EQ(message(three, two), shorter);
  EXPECT_TRUE(test::has(message(empty, two), "empty: the file is empty, but "));
}

TEST(AlignedLines, NamesWhatIsNoText) {
  const test::ScratchFolder folder;
  const std::string good = folder.write("good", "a\nb\nc\n");
  const auto message = [&](const std::string& content) {
    const std::string path = folder.write("bad", content);
    return test::message_of<UserError>([&] { read(good, path); });
  };
  EXPECT_TRUE(test::has(message("a\nb\xFF\nc\n"), "bad: byte 3 (line 2): not UTF-8: found 0xFF"));
  EXPECT_TRUE(test::has(message(std::string("a\n\0\nc\n", 6)), "bad: byte 2 (line 2): a NUL byte"));
}

}  // namespace
}  // namespace brisk
