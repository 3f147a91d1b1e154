#include "base/terminal/work_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/terminal/terminal.h"

namespace brisk {

namespace {

constexpr const char* kClearBar = "\r\x1b[K";

void write_text(int file_descriptor, const std::string& text) {
  const ssize_t count = ::write(file_descriptor, text.data(), text.size());
  static_cast<void>(count);  // a bar that cannot be drawn stops nothing
}

}  // namespace

std::string format_work(const std::string& what, int64_t done, int64_t total, double bytes_per_second, int width) {
  constexpr int kMostCells = 30, kFewestCells = 5;
  std::string words =
      fmt::format("{} of {}", format_bytes(static_cast<double>(done)), format_bytes(static_cast<double>(total)));
  if (bytes_per_second > 0) {
    words += fmt::format(", {}/s, left {}", format_bytes(bytes_per_second),
                         format_duration(static_cast<double>(std::max<int64_t>(0, total - done)) / bytes_per_second));
  }
  // One column stays free: a full line makes some terminals wrap.
  const int cells = std::min<int>(kMostCells, width - 5 - static_cast<int>(display_width(words) + display_width(what)));
  if (cells < kFewestCells) return fmt::format("{} {}", what, words);
  const double share = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  const auto full = static_cast<size_t>(share * cells);
  return fmt::format("{} [{}{}] {}", what, std::string(full, '#'), std::string(static_cast<size_t>(cells) - full, '-'),
                     words);
}

WorkBar::WorkBar(std::string what) : WorkBar(std::move(what), STDERR_FILENO, can_redraw(STDERR_FILENO)) {}

WorkBar::WorkBar(std::string what, int file_descriptor, bool redraw)
    : what_(std::move(what)), file_descriptor_(file_descriptor), redraw_(redraw) {}

WorkBar::~WorkBar() {
  if (on_screen_) write_text(file_descriptor_, kClearBar);
}

void WorkBar::update(int64_t done, int64_t total) {
  const auto now = Clock::now();
  if (first_ < 0) {
    first_ = done;
    started_ = drawn_ = now;
  }
  const auto least = redraw_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (now - drawn_ < least) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const std::string line =
      format_work(what_, done, total, static_cast<double>(done - first_) / seconds, terminal_width(file_descriptor_));
  write_text(file_descriptor_, redraw_ ? kClearBar + line : line + "\n");
  on_screen_ = redraw_;
}

}  // namespace brisk
