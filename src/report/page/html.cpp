#include "report/page/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/unicode.h"
#include "report/page/page_style.h"

namespace brisk {

std::string html_escape(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    at += point.length;
    switch (point.value) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      case '\n':
      case '\t': safe += static_cast<char>(point.value); break;
      default:
        if (point.value < 0x20) {
          append_utf8(0x2400 + point.value, safe);  // the picture of the control character
        } else if (point.value == 0x7F) {
          append_utf8(0x2421, safe);
        } else if (point.value == kInvalidCodePoint || (point.value >= 0x80 && point.value < 0xA0)) {
          append_utf8(0xFFFD, safe);
        } else {
          append_utf8(point.value, safe);
        }
    }
  }
  return safe;
}

std::string html_page(std::string_view title, const Html& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<main>\n{}\n</main>\n<script>{}</script>\n</body>\n</html>\n",
      html_escape(title), kPageStyle, body.markup(), kPageScript);
}

Html html_tiles(const std::vector<Tile>& tiles) {
  Html all;
  for (const Tile& tile : tiles) {
    all +=
        html("<div class=\"tile\"><span>{}</span><b>{}</b><small>{}</small></div>", tile.name, tile.value, tile.detail);
  }
  return html("<div class=\"tiles\">{}</div>\n", all);
}

Html html_table(const HtmlTable& table) {
  Html header, rows;
  for (const Html& cell : table.header) header += html("<th scope=\"col\">{}</th>", cell);
  for (const std::vector<Html>& row : table.rows) {
    Html cells;
    for (size_t i = 0; i < row.size(); ++i) {
      cells += i == 0 ? html("<th scope=\"row\">{}</th>", row[i]) : html("<td>{}</td>", row[i]);
    }
    rows += html("<tr>{}</tr>\n", cells);
  }
  return html("<div class=\"scroll\"><table{}><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
              table.numbers ? html(" class=\"num\"") : Html(), header, rows);
}

Html html_choice(const std::string& group, const std::vector<std::pair<std::string, Html>>& views) {
  if (views.size() == 1) return views.front().second;
  Html inputs, bodies;
  for (size_t i = 0; i < views.size(); ++i) {
    inputs += html("<label><input type=\"radio\" name=\"{}\"{}><span>{}</span></label>", group,
                   i == 0 ? " checked" : "", views[i].first);
    bodies += html("<div class=\"view\">{}</div>", views[i].second);
  }
  return html("<div class=\"choice\"><div class=\"tabs\">{}</div>\n{}</div>\n", inputs, bodies);
}

Html html_section(const Html& title, const Html& explanation, const Html& body) {
  return html("<section>\n<h2>{}</h2>\n{}{}</section>\n", title,
              explanation.empty() ? Html() : html("<p class=\"why\">{}</p>\n", explanation), body);
}

Html html_with_code(std::string_view text) {
  if (std::count(text.begin(), text.end(), '`') % 2 != 0) return html("{}", text);
  Html all;
  for (bool code = false;; code = !code) {
    const std::string_view part = text.substr(0, text.find('`'));
    all += code ? html("<code>{}</code>", part) : html("{}", part);
    if (part.size() == text.size()) return all;
    text.remove_prefix(part.size() + 1);
  }
}

Html html_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return {};
  Html items;
  for (const std::string& note : notes) items += html("<li>{}</li>", html_with_code(note));
  return html("<ul class=\"notes\">{}</ul>\n", items);
}

Html status_pill(const std::string& status) {
  const char* kind = status == "finished" || status == "imported"        ? "good"
                     : status == "running" || status == "early stopping" ? "busy"
                                                                         : "warn";
  return html("<span class=\"pill {}\">{}</span>", kind, status);
}

}  // namespace brisk
