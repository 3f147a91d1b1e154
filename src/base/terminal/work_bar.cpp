#include "base/terminal/work_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/runtime.h"
#include "base/terminal/terminal.h"

namespace brisk {

std::string format_work(const std::string& what, int64_t done, int64_t total, double bytes_per_second, int width) {
  constexpr int kMostCells = 30, kFewestCells = 5;
  std::string words =
      fmt::format("{} of {}", format_bytes(static_cast<double>(done)), format_bytes(static_cast<double>(total)));
  if (bytes_per_second > 0) {
    words += fmt::format(", {}/s, {} left", format_bytes(bytes_per_second),
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

WorkBar::WorkBar(std::string what) : what_(std::move(what)), log_(Runtime::current().log()) {}

WorkBar::~WorkBar() { log_.clear_progress(); }

void WorkBar::update(int64_t done, int64_t total) {
  const auto now = Clock::now();
  if (first_ < 0) {
    first_ = done;
    started_ = told_ = now;
  }
  if (now - told_ < log_.work_interval()) return;
  told_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  log_.work({what_, done, total, static_cast<double>(done - first_) / seconds});
}

}  // namespace brisk
