#include "base/terminal/terminal_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::chrono::milliseconds kRedrawInterval(100);

void write_all(int file_descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file_descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody listens; that is no reason to stop a run
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// The last resort: whatever a line quotes, a terminal is told to do nothing but what coloured() writes, where it writes.
std::string with_our_colours_only(std::string_view text, bool colours) {
  if (!colours) return without_controls(text);
  constexpr std::array<std::string_view, 7> kOurs = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m", "\x1b[31m",
                                                     "\x1b[32m", "\x1b[33m", "\x1b[34m"};
  std::string shown;
  while (!text.empty()) {
    const size_t escape = text.find('\x1b');
    shown += without_controls(text.substr(0, escape));
    if (escape == std::string_view::npos) break;
    text.remove_prefix(escape);
    const auto* const ours =
        std::find_if(kOurs.begin(), kOurs.end(), [&](std::string_view code) { return text.starts_with(code); });
    const size_t taken = ours == kOurs.end() ? 1 : ours->size();
    shown += ours == kOurs.end() ? without_controls(text.substr(0, 1)) : std::string(*ours);
    text.remove_prefix(taken);
  }
  return shown;
}

}  // namespace

TerminalLog::TerminalLog() : TerminalLog(STDERR_FILENO, can_redraw(STDERR_FILENO)) {}

TerminalLog::TerminalLog(int file_descriptor, bool redraw)
    : file_descriptor_(file_descriptor), redraw_(redraw), colours_(use_colour(file_descriptor)) {}

TerminalLog::~TerminalLog() { finish_progress(); }

void TerminalLog::line(LogLevel level, std::string_view text) {
  std::string before;
  if (level == LogLevel::warning) before = (colours_ ? coloured("warning:", Colour::yellow).text : "warning:") + " ";
  const std::lock_guard lock(mutex_);
  take_off_screen();
  write_all(file_descriptor_, fmt::format("{}{}\n", before, with_our_colours_only(text, colours_)));
}

void TerminalLog::progress(const Progress& progress, bool is_logged) {
  const std::lock_guard lock(mutex_);
  if (!redraw_) {
    if (is_logged) write_all(file_descriptor_, format_progress(progress) + "\n");
    return;
  }
  last_ = progress;
  pending_ = true;
  if (std::chrono::steady_clock::now() - drawn_at_ >= kRedrawInterval) draw();
}

void TerminalLog::work(const WorkProgress& progress) {
  const std::lock_guard lock(mutex_);
  const std::string line = format_work(printable(progress.what), progress.done, progress.total,
                                       progress.bytes_per_second, terminal_width(file_descriptor_));
  write_all(file_descriptor_, redraw_ ? fmt::format("{}{}", kClearLine, line) : line + "\n");
  if (redraw_) shown_ = Shown::work;
}

std::chrono::milliseconds TerminalLog::work_interval() const {
  return redraw_ ? kRedrawInterval : LogSink::work_interval();
}

void TerminalLog::clear_progress() {
  const std::lock_guard lock(mutex_);
  take_off_screen();
}

void TerminalLog::finish_progress() {
  const std::lock_guard lock(mutex_);
  if (pending_) draw();
  if (shown_ == Shown::progress) write_all(file_descriptor_, "\n");
  shown_ = Shown::nothing;
}

void TerminalLog::draw() {
  const std::string line = format_progress_bar(last_, terminal_width(file_descriptor_));
  write_all(file_descriptor_, fmt::format("{}{}", kClearLine, line));
  shown_ = Shown::progress;
  pending_ = false;
  drawn_at_ = std::chrono::steady_clock::now();
}

void TerminalLog::take_off_screen() {
  if (shown_ == Shown::nothing) return;
  write_all(file_descriptor_, kClearLine);
  if (shown_ == Shown::progress) pending_ = true;  // finish_progress() draws it, where no progress comes
  shown_ = Shown::nothing;
  drawn_at_ = {};  // the next progress draws at once
}

}  // namespace brisk
