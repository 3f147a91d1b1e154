#include "data/read/aligned_reader.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;

// All of it, a few bytes at a time.
std::string merged(const std::string& source, const std::string& target, size_t step = 7) {
  AlignedReader reader(source, target);
  std::string all, piece(step, '\0');
  for (size_t count = 0; (count = reader.read(piece.data(), piece.size())) > 0;) all.append(piece, 0, count);
  return all;
}

class AlignedFiles : public ::testing::Test {
 protected:
  const test::ScratchFolder folder;
  std::string merge(const std::string& source, const std::string& target) {
    return merged(folder.write("a.en", source), folder.write("a.de", target));
  }
  std::string refusal(const std::string& source, const std::string& target) {
    return message_of<UserError>([&] { merge(source, target); });
  }
};

TEST_F(AlignedFiles, AreMergedLineByLine) {
  using namespace std::string_literals;
  EXPECT_EQ(merge("a house\nthe cat\n", "ein Haus\ndie Katze\n"), "a house\0ein Haus\nthe cat\0die Katze\n"s);
  EXPECT_EQ(merge("\xEF\xBB\xBF"
                  "a\r\nb",
                  "x\ny\r\n"),
            "a\0x\nb\0y\n"s)
      << "marks and line ends";
  EXPECT_EQ(merge("\n\n", "x\n\n"), "\0x\n\0\n"s) << "an empty line is a line";
  EXPECT_EQ(merge("", ""), "");
}

TEST_F(AlignedFiles, OfManyLinesAreReadInPieces) {
  std::string source, target, expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::string one = "text " + std::to_string(i), two = "Text Nummer " + std::to_string(i);
    source += one + "\n";
    target += two + "\n";
    expected += one + '\0' + two + "\n";
  }
  EXPECT_EQ(merged(folder.write("a.en", source), folder.write("a.de", target), 1 << 16), expected);
}

TEST_F(AlignedFiles, OfDifferentLengthNameTheFirstLineThatIsMissing) {
  const std::string message = refusal("a\nb\nc\n", "x\ny\n");
  EXPECT_TRUE(has(message, "a.de: the file ends with line 2")) << message;
  EXPECT_TRUE(has(message, "a.en has a line 3")) << message;
  EXPECT_TRUE(has(refusal("", "x\n"), "a.en: the file is empty"));
  std::string many;
  for (int i = 0; i < 70'000; ++i) many += "line\n";
  EXPECT_TRUE(has(refusal(many + "one more\n", many), "the file ends with line 70000"));
}

TEST_F(AlignedFiles, ThatAreNoTextSayWhere) {
  const std::string message = refusal("a\nb\n", "x\n\xFFy\n");
  EXPECT_TRUE(has(message, "a.de")) << message;
  EXPECT_TRUE(has(message, "line 2")) << message;
  EXPECT_TRUE(has(message, "not UTF-8")) << message;
  EXPECT_TRUE(has(refusal(std::string("a\0b\n", 4), "x\n"), "NUL byte"));
}

}  // namespace
}  // namespace brisk
