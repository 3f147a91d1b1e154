// One self-contained HTML page: no network, no library, light or dark mode as the system has it, as wide as the screen.
//
// Html is markup, and a string becomes markup by being escaped, so that no name, label or text of a run's files can be
// anything but text on a page. Markup itself is written as the format string of html(), a literal of our own:
//
//   Html body = html("<h1>{}</h1>", run.name);              // run.name is escaped
//   body += html("<p>{} of {:.1f} %</p>", status_pill(run.status), share);   // markup stays markup
//   write_file_atomically(path, html_page("runs/bible", body));
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace brisk {

// Text that came from outside, made harmless: markup is escaped, bytes that are not UTF-8 become U+FFFD, and control
// characters are shown as pictures; line breaks and tabs stay.
std::string html_escape(std::string_view text);

class Html {
 public:
  Html() = default;
  Html(std::string_view text) : markup_(html_escape(text)) {}
  Html(const std::string& text) : Html(std::string_view(text)) {}
  Html(const char* text) : Html(std::string_view(text)) {}

  const std::string& markup() const { return markup_; }
  bool empty() const { return markup_.empty(); }
  Html& operator+=(const Html& other) {
    markup_ += other.markup_;
    return *this;
  }
  friend Html operator+(Html a, const Html& b) { return std::move(a += b); }

 private:
  template <typename... Args>
  friend Html html(fmt::format_string<Args...> markup, Args&&... args);

  std::string markup_;
};

template <typename T>
decltype(auto) html_argument(const T& value) {
  if constexpr (std::is_same_v<T, Html>) {
    return (value.markup());
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return html_escape(value);
  } else {
    static_assert(std::is_arithmetic_v<T>, "make it a string, which is escaped, or Html");
    return (value);
  }
}

// Markup with its places filled: strings are escaped, Html and numbers stand as they are.
template <typename... Args>
Html html(fmt::format_string<Args...> markup, Args&&... args) {
  const std::tuple<decltype(html_argument(args))...> safe(html_argument(args)...);
  Html result;
  result.markup_ =
      std::apply([&](const auto&... each) { return fmt::vformat(markup, fmt::make_format_args(each...)); }, safe);
  return result;
}

std::string html_page(std::string_view title, const Html& body);

struct Tile {
  std::string name, value, detail;
};
Html html_tiles(const std::vector<Tile>& tiles);

// The first column stays in sight where the table is wider than the screen.
struct HtmlTable {
  std::vector<Html> header;
  std::vector<std::vector<Html>> rows;
  bool numbers = false;  // all columns but the first are set to the right
};
Html html_table(const HtmlTable& table);

// Several views of one thing, of which the reader sees one, by their names. `group` is unique on the page.
Html html_choice(const std::string& group, const std::vector<std::pair<std::string, Html>>& views);

Html html_section(const Html& title, const Html& explanation, const Html& body);

// What stands between backticks is code.
Html html_with_code(std::string_view text);
Html html_notes(const std::vector<std::string>& notes);  // nothing if there are none

Html status_pill(const std::string& status);

}  // namespace brisk

template <>
struct fmt::formatter<brisk::Html> : fmt::formatter<std::string_view> {
  auto format(const brisk::Html& html, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(html.markup(), context);
  }
};
