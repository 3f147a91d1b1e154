#include "base/files/lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/files/file_kind.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class LogLines : public ::testing::Test {
 protected:
  struct Line {
    std::string text;
    int64_t number;
    bool ended, too_long;
    bool operator==(const Line&) const = default;
  };

  std::vector<Line> lines_of(const std::string& contents) const {
    std::vector<Line> lines;
    for_each_log_line(folder_.write("log", contents), [&](const LogLine& line) {
      lines.push_back({std::string(line.text), line.number, line.ended, line.too_long});
    });
    return lines;
  }

  test::ScratchFolder folder_;
};

TEST_F(LogLines, AreReadWithTheirNumbers) {
  EXPECT_EQ(lines_of(""), std::vector<Line>{});
  EXPECT_EQ(lines_of("a\n\nbc\n"),
            (std::vector<Line>{{"a", 1, true, false}, {"", 2, true, false}, {"bc", 3, true, false}}));
  for_each_log_line(folder_ / "none", [](const LogLine&) { FAIL() << "there is no such file"; });
}

TEST_F(LogLines, TheLastWithoutItsEndIsOneThatIsBeingWritten) {
  EXPECT_EQ(lines_of("a\nb"), (std::vector<Line>{{"a", 1, true, false}, {"b", 2, false, false}}));
}

TEST_F(LogLines, MayEndAnywhereInWhatIsReadAtOnce) {
  std::string contents;
  for (int i = 0; i < 70000; ++i) contents += std::to_string(i) + "\n";  // 400 KB, read in pieces of 256 KiB
  const std::vector<Line> lines = lines_of(contents);
  ASSERT_EQ(lines.size(), 70000u);
  for (int i = 0; i < 70000; ++i) {
    ASSERT_EQ(lines[static_cast<size_t>(i)], (Line{std::to_string(i), i + 1, true, false}));
  }
}

TEST_F(LogLines, TooLongAreCutAndNamedSo) {
  const auto longest = static_cast<size_t>(file_kind::kLongestLogLine);
  const std::vector<Line> lines = lines_of(std::string(longest, 'a') + "\n" + std::string(longest + 1, 'b') + "\nc\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_FALSE(lines[0].too_long);
  EXPECT_EQ(lines[0].text.size(), longest);
  EXPECT_TRUE(lines[1].too_long);
  EXPECT_LE(lines[1].text.size(), longest);
  EXPECT_EQ(lines[2], (Line{"c", 3, true, false}));
}

TEST_F(LogLines, OfASparseFileOfTerabytesAreNotRead) {
  const std::string path = folder_.write("log", "");
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  const std::string problem = test::message_of<UserError>([&] { for_each_log_line(path, [](const LogLine&) {}); });
  EXPECT_TRUE(test::has(problem, "it has 1.00 TiB, and a run's log has at most 16.0 GiB")) << problem;
}

}  // namespace
}  // namespace brisk
