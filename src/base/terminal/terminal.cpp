#include "base/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/runtime.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

// Three digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string padded(std::string_view text, int64_t width, Align align) {
  const std::string spaces(static_cast<size_t>(std::max<int64_t>(0, width - display_width(text))), ' ');
  return align == Align::left ? std::string(text) + spaces : spaces + std::string(text);
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.3f}", loss) : fmt::format("{}", loss);
}

// In the unit that leaves at most three digits before the point; each unit is `step` times the previous one.
std::string in_units(double value, double step, const std::array<const char*, 6>& units) {
  size_t unit = 0;
  value /= step;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return three_digits(value) + units[unit];
}

}  // namespace

bool is_terminal(int file_descriptor) { return ::isatty(file_descriptor) == 1; }

bool can_redraw(int file_descriptor) {
  return Runtime::current().environment("TERM") != "dumb" && is_terminal(file_descriptor);
}

bool use_colour(int file_descriptor) {
  const Runtime& runtime = Runtime::current();
  return runtime.environment("NO_COLOR").empty() && !runtime.environment("TERM").empty() && can_redraw(file_descriptor);
}

int terminal_width(int file_descriptor, int otherwise) {
  winsize size{};
  if (::ioctl(file_descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

ColouredText coloured(std::string_view text, Colour colour) {
  constexpr std::array<const char*, 6> kCodes = {"31", "32", "33", "34", "1", "2"};
  return {fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(colour)], text)};
}

ColouredText coloured_in_log(std::string_view text, Colour colour) {
  return Runtime::current().log().shows_colours() ? coloured(text, colour) : ColouredText{std::string(text)};
}

namespace {

std::string_view without_last_newlines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

void say_line(std::string_view line) { Runtime::current().log().line(LogLevel::info, without_last_newlines(line)); }
void warn_line(std::string_view line) { Runtime::current().log().line(LogLevel::warning, without_last_newlines(line)); }

std::string format_count(double count) {
  if (!std::isfinite(count)) return fmt::format("{}", count);
  if (count < 0) return fmt::format("-{}", format_count(-count));
  if (count < 999.5) return count == std::floor(count) ? fmt::format("{:.0f}", count) : three_digits(count);
  return in_units(count, 1000, {"K", "M", "G", "T", "P", "E"});
}

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes)) return fmt::format("{} B", bytes);
  if (bytes < 0) return fmt::format("-{}", format_bytes(-bytes));
  if (bytes < 1023.5) return fmt::format("{:.0f} B", bytes);
  return in_units(bytes, 1024, {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"});
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  if (seconds < 0) return fmt::format("-{}", format_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d {:02}h", whole / 86400, whole % 86400 / 3600);
}

namespace {

struct CodePoints {
  char32_t first, last;
};
// The blocks of East Asian scripts and emoji, two columns wide, and the combining marks, which take none. (The C library's own table needs a locale that may not be installed.)
constexpr CodePoints kWide[] = {{0x1100, 0x115F},  {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},
                                {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
                                {0x20000, 0x3FFFD}};
constexpr CodePoints kJoined[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},
                                  {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};

bool is_among(std::span<const CodePoints> ranges, char32_t point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [point](const CodePoints& range) { return range.first <= point && point <= range.last; });
}

// The character at the start of `text`: its bytes and its columns. An invalid byte takes one column.
struct Character {
  size_t bytes = 1;
  int64_t columns = 1;
};
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t bytes = byte(0) < 0xC0 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (bytes == 1 || bytes > text.size()) return {};
  char32_t point = byte(0) & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = point << 6 | (byte(i) & 0x3F);
  }
  return {bytes, is_among(kJoined, point) ? 0 : is_among(kWide, point) ? 2 : 1};
}

}  // namespace

int64_t display_width(std::string_view text) {
  int64_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    columns += character.columns;
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string shortened(std::string_view text, int64_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  int64_t left = columns - 3;
  size_t kept = 0;
  while (kept < text.size()) {
    const Character character = first_character(text.substr(kept));
    if ((left -= character.columns) < 0) break;
    kept += character.bytes;
  }
  return std::string(text.substr(0, kept)) + "...";
}

namespace {
constexpr int64_t kWidestCell = 120;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = printable(column.title, kWidestCell);
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(cell, kWidestCell);
  rows_.push_back(std::move(cells));
}

void Table::add_separator() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<int64_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int64_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, display_width(row[i]));
    }
    widths.push_back(width);
  }
  std::string rule;
  for (size_t i = 0; i < widths.size(); ++i) {
    rule += (i == 0 ? "" : "  ") + std::string(static_cast<size_t>(widths[i]), '-');
  }
  const auto line = [&](const auto& cell_of) {
    std::string result;
    for (size_t i = 0; i < columns_.size(); ++i) {
      result += (i == 0 ? "" : "  ") + padded(cell_of(i), widths[i], columns_[i].align);
    }
    while (!result.empty() && result.back() == ' ') result.pop_back();
    return result + "\n";
  };
  std::string result = line([&](size_t i) { return columns_[i].title; }) + rule + "\n";
  for (const auto& row : rows_) result += row.empty() ? rule + "\n" : line([&](size_t i) { return row[i]; });
  return result;
}

std::string format_progress(const Progress& progress) {
  std::string text;
  if (progress.epochs > 0) text += fmt::format("epoch {}/{}  ", progress.epoch, progress.epochs);
  const double percent =
      progress.steps > 0 ? 100 * static_cast<double>(progress.step) / static_cast<double>(progress.steps) : 0;
  text += fmt::format("step {}/{}  {:.0f} %  loss {}  {} tokens/s", progress.step, progress.steps,
                      std::clamp(std::floor(percent), 0.0, 100.0), loss_text(progress.loss),
                      format_count(progress.tokens_per_second));
  if (!progress.gpu.empty()) text += "  " + progress.gpu;
  text += fmt::format("  elapsed {}", format_duration(progress.elapsed_seconds));
  if (progress.seconds_left >= 0) text += fmt::format("  left {}", format_duration(progress.seconds_left));
  if (progress.skipped_steps > 0) text += fmt::format("  {} skipped", progress.skipped_steps);
  return text;
}

std::string format_progress_bar(const Progress& progress, int width) {
  constexpr int kMostCells = 30, kFewestCells = 5;
  const std::string words = format_progress(progress);
  // One column stays free: a full line makes some terminals wrap, and then \r returns to the wrong one.
  const int cells = std::min<int>(kMostCells, width - 1 - static_cast<int>(display_width(words)) - 3);
  if (cells < kFewestCells) return words.substr(0, static_cast<size_t>(std::max(0, width - 1)));
  const double share =
      progress.steps > 0
          ? std::clamp(static_cast<double>(progress.step) / static_cast<double>(progress.steps), 0.0, 1.0)
          : 0;
  const auto done = static_cast<size_t>(share * cells);
  return fmt::format("[{}{}] {}", std::string(done, '#'), std::string(static_cast<size_t>(cells) - done, '-'), words);
}

}  // namespace brisk
