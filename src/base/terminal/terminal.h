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

#include "base/error.h"
#include "base/log.h"

namespace brisk {

bool is_terminal(int file_descriptor);

bool can_redraw(int file_descriptor);  // a terminal that can clear a line: TERM is not "dumb"

// A terminal, NO_COLOR unset or empty, and TERM not "dumb".
bool use_colour(int file_descriptor);

// Columns of the terminal; `otherwise` if it is not one.
int terminal_width(int file_descriptor, int otherwise = 100);

enum class Colour { red, green, yellow, blue, bold, dim };

// Text that a terminal shows in colour. A type of its own: escape sequences in a string are not obeyed but shown.
struct ColouredText {
  std::string text;
};
ColouredText coloured(std::string_view text, Colour colour);
// In colour where the current runtime's log shows colours, else unchanged.
ColouredText coloured_in_log(std::string_view text, Colour colour);

// A message in the current runtime's log, whose strings are safe to show (base/error.h). Newlines at its end are left
// out: say("") is a blank line.
void say_line(std::string_view line);
void warn_line(std::string_view line);

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line(format_message(format, std::forward<Args>(args)...));
}
// A table with a blank line below it.
inline void say_table(std::string_view table) {
  say_line(table);
  say_line("");
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn_line(format_message(format, std::forward<Args>(args)...));
}

enum class Align { left, right };

class Table {
 public:
  struct Column {
    Column(std::string title, Align align = Align::left) : title(std::move(title)), align(align) {}
    Column(const char* title) : title(title) {}
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns);
  void add_row(std::vector<std::string> cells);  // missing cells are empty; each is shown by printable()
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

// format_progress() (brisk/log.h) after a bar [####------] of the share of steps done, fitted into `width` columns.
std::string format_progress_bar(const Progress& progress, int width);

}  // namespace brisk

template <>
struct fmt::formatter<brisk::ColouredText> : fmt::formatter<std::string_view> {
  auto format(const brisk::ColouredText& coloured, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(coloured.text, context);
  }
};
