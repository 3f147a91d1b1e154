// One self-contained HTML page: no network, no library, light or dark mode as the system has it, as wide as the screen.
//
//   write_file_atomically(path, html_page("runs/bible", "<h1>" + html_escape(name) + "</h1>" + ...));
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brisk {

// Text that came from outside, made harmless: markup is escaped, bytes that are not UTF-8 become U+FFFD, and control
// characters are shown as pictures; line breaks and tabs stay.
std::string html_escape(std::string_view text);

std::string html_page(std::string_view title, std::string_view body);

struct Tile {
  std::string name, value, detail;
};
std::string html_tiles(const std::vector<Tile>& tiles);

// Rows of cells that are HTML already. The first column stays in sight where the table is wider than the screen.
struct HtmlTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  bool numbers = false;  // all columns but the first are set to the right
};
std::string html_table(const HtmlTable& table);

// Several views of one thing, of which the reader sees one: name -> HTML. `group` is unique on the page.
std::string html_choice(const std::string& group, const std::vector<std::pair<std::string, std::string>>& views);

std::string html_section(std::string_view title, std::string_view explanation, std::string_view body);

std::string html_notes(const std::vector<std::string>& notes);  // plain text; nothing if there are none

std::string status_pill(const std::string& status);

}  // namespace brisk
