// Output for people: messages in the runtime's log (base/log.h; standard error by default), results on standard output;
// colour and redraws only on a terminal.
//
//   say("training on {} tokens", format_count(tokens));                // a line of the log
//   warn("vocabulary of {} is larger than the text supports", size);   // "warning: ..." in yellow on a terminal
//
//   Table table({"phase", {"seconds", Align::right}});
//   table.add_row({"forward", "12.1"});
//   table.add_separator();
//   table.add_row({"total", "30.4"});
//   fmt::print("{}", table.text());
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace brisk {

bool is_terminal(int file_descriptor);

bool can_redraw(int file_descriptor);  // a terminal that can clear a line: TERM is not "dumb"

// A terminal, NO_COLOR unset or empty, and TERM not "dumb".
bool use_colour(int file_descriptor);

// Columns of the terminal; `otherwise` if it is not one.
int terminal_width(int file_descriptor, int otherwise = 100);

enum class Colour { red, green, yellow, blue, bold, dim };

// The text in colour if use_colour(file_descriptor), else unchanged.
std::string coloured(std::string_view text, Colour colour, int file_descriptor);

// A line of the current runtime's log.
void say_line(std::string_view line);
void warn_line(std::string_view line);

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn_line(fmt::format(format, std::forward<Args>(args)...));
}

std::string format_count(double count);       // 950, 1.23K, 12.3K, 123K, 1.23M, 1.23G, 1.23T
std::string format_bytes(double bytes);       // 512 B, 1.00 KiB, 1.42 GiB
std::string format_duration(double seconds);  // 850 us, 12.3 ms, 4.20 s, 3m 05s, 2h 07m, 3d 04h

enum class Align { left, right };

class Table {
 public:
  struct Column {
    Column(std::string title, Align align = Align::left) : title(std::move(title)), align(align) {}
    Column(const char* title) : title(title) {}
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add_row(std::vector<std::string> cells);  // missing cells are empty
  void add_separator();
  std::string text() const;  // aligned, a line per row, a rule under the header

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a separator
};

// Columns that a UTF-8 string takes on a terminal: one per character, two for East Asian scripts and emoji.
int64_t display_width(std::string_view text);
// The text, cut between characters and ended by "..." if it takes more than so many columns.
std::string shortened(std::string_view text, int64_t columns);

// "epoch 1/3  step 40/900  4 %  loss 5.310  12.3K tokens/s  98 % busy, 612 W, 64 C  elapsed 4.20 s  left 1m 30s"
std::string format_progress(const Progress& progress);

// The same after a bar [####------] of the share of steps done, fitted into `width` columns.
std::string format_progress_bar(const Progress& progress, int width);

}  // namespace brisk
