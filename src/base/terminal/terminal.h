// Output for people: messages on standard error, results on standard output; colour and redraws only on a terminal.
//
//   say("training on {} tokens", format_count(tokens));                // standard error
//   warn("vocabulary of {} is larger than the text supports", size);   // "warning: ..." in yellow on a terminal
//
//   Table table({"phase", {"seconds", Align::right}});
//   table.add_row({"forward", "12.1"});
//   table.add_separator();
//   table.add_row({"total", "30.4"});
//   fmt::print("{}", table.text());
//
//   ProgressBar bar;                                // redraws one line on a terminal, about 10 times a second at most
//   bar.update({.epoch = 1, .epochs = 3, .step = 40, .steps = 900, .loss = 5.31, ...});   // each step: cheap
//   bar.log({...});                                 // every logging_steps: a plain line if there is no terminal
//   bar.finish();                                   // the last state stays as a line of its own
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A line on standard error; a visible progress bar is cleared first and redrawn at its next update.
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

struct Progress {
  int64_t epoch = 0, epochs = 0;  // epochs 0: not shown
  int64_t step = 0, steps = 0;
  double loss = 0;
  double tokens_per_second = 0;
  double elapsed_seconds = 0;
  double seconds_left = -1;   // negative: not known yet
  int64_t skipped_steps = 0;  // by loss scaling; 0: not shown
  std::string gpu = {};       // format_gpu() of base/gpu/gpu_watch.h; empty: not shown
};

// "epoch 1/3  step 40/900  loss 5.310  12.3K tokens/s  98 % busy, 612 W, 64 C  elapsed 4.20 s  left 1m 30s"
std::string format_progress(const Progress& progress);

// The same after a bar [####------] of the share of steps done, fitted into `width` columns.
std::string format_progress_bar(const Progress& progress, int width);

// Used by one thread; say() and warn() may be called from any.
class ProgressBar {
 public:
  ProgressBar();                                  // draws if standard error is a terminal
  ProgressBar(int file_descriptor, bool redraw);  // chosen by the caller, as tests do
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(const Progress& progress);  // redraws at most every 0.1 s; nothing in a pipe
  void log(const Progress& progress);     // a redraw on a terminal, a plain line in a pipe
  void clear();                           // removes the line; the next update draws it again
  void finish();                          // draws the last state and leaves it as a line of its own

 private:
  friend void say_line(std::string_view line);
  void draw(const Progress& progress);
  void take_off_screen();

  int file_descriptor_;
  bool redraw_;
  bool on_screen_ = false;
  bool pending_ = false;  // `last_` has not been drawn
  Progress last_;
  std::chrono::steady_clock::time_point drawn_at_{};
};

}  // namespace brisk
