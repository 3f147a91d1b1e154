#include "base/terminal/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime.h"
#include "base/terminal/terminal_log.h"

namespace brisk {
namespace {

TEST(Format, CountsHaveThreeDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(3.14159), "3.14");
  EXPECT_EQ(format_count(999.7), "1.00K");
  EXPECT_EQ(format_count(1234), "1.23K");
  EXPECT_EQ(format_count(12345), "12.3K");
  EXPECT_EQ(format_count(999999), "1.00M");
  EXPECT_EQ(format_count(1234567), "1.23M");
  EXPECT_EQ(format_count(110e6), "110M");
  EXPECT_EQ(format_count(2.5e12), "2.50T");
  EXPECT_EQ(format_count(-1500), "-1.50K");
}

TEST(Format, BytesArePowersOf1024) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1.42 * 1024 * 1024 * 1024), "1.42 GiB");
  EXPECT_EQ(format_bytes(150.0 * 1024 * 1024), "150 MiB");
}

TEST(Format, DurationsHaveTheUnitThatFits) {
  EXPECT_EQ(format_duration(0.00085), "850 us");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_duration(0.9999), "1.00 s");
  EXPECT_EQ(format_duration(4.2), "4.20 s");
  EXPECT_EQ(format_duration(59.99), "1m 00s");
  EXPECT_EQ(format_duration(185), "3m 05s");
  EXPECT_EQ(format_duration(3599.6), "1h 00m");
  EXPECT_EQ(format_duration(2 * 3600 + 7 * 60 + 59), "2h 07m");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3d 04h");
}

TEST(Table, AlignsItsColumns) {
  Table table({"phase", {"seconds", Align::right}});
  table.add_row({"forward", "12.10"});
  table.add_row({"µ-batch", "3.00"});
  table.add_separator();
  table.add_row({"total"});
  EXPECT_EQ(table.text(),
            "phase    seconds\n"
            "-------  -------\n"
            "forward    12.10\n"
            "µ-batch     3.00\n"
            "-------  -------\n"
            "total\n");
}

const Progress kProgress = {.epoch = 1,
                            .epochs = 3,
                            .step = 40,
                            .steps = 80,
                            .loss = 5.3104,
                            .tokens_per_second = 12345,
                            .elapsed_seconds = 4.2,
                            .seconds_left = 90};

TEST(Table, WideCharactersTakeTwoColumns) {
  Table table({"class", {"rows", Align::right}});
  table.add_row({"喜び", "1"});
  table.add_row({"joy", "20"});
  EXPECT_EQ(table.text(),
            "class  rows\n"
            "-----  ----\n"
            "喜び      1\n"
            "joy      20\n");
  EXPECT_EQ(display_width("e\u0301tude \U0001F600"), 8);  // an accent of its own, a picture
  EXPECT_EQ(display_width("naïve"), 5);
  EXPECT_EQ(display_width("\xff\xe5\x96"), 3);  // not UTF-8: a column a byte
}

TEST(Terminal, ShortensBetweenCharacters) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "lo...");
  EXPECT_EQ(shortened("喜怒哀楽喜怒", 10), "喜怒哀...");
  EXPECT_EQ(shortened("喜怒哀楽喜怒", 12), "喜怒哀楽喜怒");
}

TEST(Progress, SaysEverythingInALine) {
  EXPECT_EQ(format_progress(kProgress),
            "epoch 1/3  step 40/80  50 %  loss 5.310  12.3K tokens/s  elapsed 4.20 s  left 1m 30s");
  Progress early = kProgress;
  early.seconds_left = -1;
  early.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format_progress(early), "epoch 1/3  step 40/80  50 %  loss nan  12.3K tokens/s  elapsed 4.20 s");
  early.loss = 5;
  early.gpu = "98 % busy, 612 W, 64 C";
  EXPECT_EQ(format_progress(early),
            "epoch 1/3  step 40/80  50 %  loss 5.000  12.3K tokens/s  98 % busy, 612 W, 64 C  elapsed 4.20 s");
}

TEST(Progress, BarFitsTheTerminal) {
  const std::string wide = format_progress_bar(kProgress, 140);
  EXPECT_TRUE(wide.starts_with("[###############---------------] epoch 1/3")) << wide;
  for (int width = 1; width < 200; ++width) {
    EXPECT_LT(display_width(format_progress_bar(kProgress, width)), width) << width;
  }
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  std::string everything() {
    ::close(ends[1]);
    ends[1] = -1;
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    return text;
  }
  int ends[2];
};

TEST(TerminalLog, IsPlainLinesInAPipe) {
  Pipe pipe;
  {
    TerminalLog log(pipe.ends[1], false);
    for (int i = 0; i < 10; ++i) log.progress(kProgress, false);
    log.progress(kProgress, true);
    log.clear_progress();
    log.finish_progress();
  }
  EXPECT_EQ(pipe.everything(), format_progress(kProgress) + "\n");
}

TEST(TerminalLog, RedrawsTenTimesASecondAtMostAndEndsWithTheLastState) {
  Pipe pipe;
  {
    TerminalLog log(pipe.ends[1], true);
    Progress progress = kProgress;
    for (int i = 1; i <= 80; ++i) {
      progress.step = i;
      log.progress(progress, false);
    }
    log.finish_progress();
    log.finish_progress();
  }
  const std::string text = pipe.everything();
  // The first, the last, and more only if this machine took over 0.1 s for the loop.
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 10) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.rfind("step 80/80"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Colour, IsForTerminalsAndHonoursNoColor) {
  Pipe pipe;
  EXPECT_FALSE(is_terminal(pipe.ends[1]));
  EXPECT_FALSE(use_colour(pipe.ends[1]));
  EXPECT_EQ(terminal_width(pipe.ends[1], 77), 77);

  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (controller < 0 || ::grantpt(controller) != 0 || ::unlockpt(controller) != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 91;
  ::ioctl(terminal, TIOCSWINSZ, &size);
  EXPECT_TRUE(is_terminal(terminal));
  EXPECT_EQ(terminal_width(terminal), 91);
  const auto is_coloured_in = [&](const Environment& environment) {
    Runtime runtime({.environment = environment});
    const RuntimeScope scope(runtime);
    return TerminalLog(terminal, false).shows_colours();
  };
  EXPECT_TRUE(is_coloured_in({{"TERM", "xterm"}}));
  EXPECT_TRUE(is_coloured_in({{"TERM", "xterm"}, {"NO_COLOR", ""}})) << "an empty NO_COLOR does not count";
  EXPECT_FALSE(is_coloured_in({{"TERM", "xterm"}, {"NO_COLOR", "1"}}));
  EXPECT_FALSE(is_coloured_in({{"TERM", "dumb"}}));
  {
    Runtime runtime({.environment = {{"TERM", "xterm"}}});
    const RuntimeScope scope(runtime);
    TerminalLog(terminal, false).line(LogLevel::info, "\x1b[31mred\x1b[0m \x1b[2J");
    std::string shown(200, ' ');
    shown.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(controller, shown.data(), shown.size()))));
    EXPECT_EQ(shown, "\x1b[31mred\x1b[0m \\x1b[2J\r\n") << "of all sequences a terminal is given our colours only";
  }
  ::close(terminal);
  ::close(controller);
}

class Colourful final : public LogSink {
 public:
  void line(LogLevel, std::string_view text) override { lines.emplace_back(text); }
  bool shows_colours() const override { return true; }
  std::vector<std::string> lines;
};

TEST(Colour, OfALineOfTheLogIsForSinksThatShowIt) {
  const auto sink = std::make_shared<Colourful>();
  Runtime colourful({.log = sink});
  const RuntimeScope scope(colourful);
  EXPECT_EQ(coloured_in_log("text", Colour::red).text, "\x1b[31mtext\x1b[0m");
  Runtime plain({.environment = {}});
  const RuntimeScope inner(plain);
  EXPECT_EQ(coloured_in_log("text", Colour::red).text, "text");
}

TEST(Say, HandsOnNoNewlineAtTheEndOfALine) {
  const auto sink = std::make_shared<Colourful>();
  Runtime runtime({.log = sink});
  const RuntimeScope scope(runtime);
  say("a table\nof two lines\n");
  warn("a warning\n\n");
  say("");
  EXPECT_EQ(sink->lines, std::vector<std::string>({"a table\nof two lines", "a warning", ""}));
}

TEST(Say, GoesToStandardErrorAndLeavesStandardOutputToResults) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  say("{} tokens", 5);
  warn("only {}", 5);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "5 tokens\nwarning: only 5\n");
}

TEST(TerminalLog, ALineTakesTheBarOffTheScreenFirst) {
  Pipe pipe;
  {
    TerminalLog log(pipe.ends[1], true);
    log.progress(kProgress, false);
    log.line(LogLevel::info, "saved");
    log.progress(kProgress, false);
  }
  const std::string text = pipe.everything();
  EXPECT_NE(text.find("\r\x1b[Ksaved\n\r\x1b[K["), std::string::npos) << text;
}

TEST(TerminalLog, ObeysNoSequence) {
  Pipe pipe;
  {
    TerminalLog log(pipe.ends[1], false);
    log.line(LogLevel::info, "\x1b[31mbrisk:\x1b[0m a\n\tb\x1b[2J\x1b]0;c\x07\x1b[31;5m");
    log.work({.what = "d\x1b[2J", .done = 1, .total = 2});
  }
  const std::string text = pipe.everything();
  // No terminal: nothing of ours would be there, so what is comes from elsewhere.
  EXPECT_TRUE(text.starts_with("\\x1b[31mbrisk:\\x1b[0m a\n\tb\\x1b[2J\\x1b]0;c\\x07\\x1b[31;5m\nd\\x1b[2J [")) << text;
}

}  // namespace
}  // namespace brisk
