#include "report/page/html.h"

#include <fmt/format.h>

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

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<main>\n{}\n</main>\n<script>{}</script>\n</body>\n</html>\n",
      html_escape(title), kPageStyle, body, kPageScript);
}

std::string html_tiles(const std::vector<Tile>& tiles) {
  std::string html = "<div class=\"tiles\">";
  for (const Tile& tile : tiles) {
    html += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b><small>{}</small></div>", html_escape(tile.name),
                        html_escape(tile.value), html_escape(tile.detail));
  }
  return html + "</div>\n";
}

std::string html_table(const HtmlTable& table) {
  std::string html = fmt::format("<div class=\"scroll\"><table{}><thead><tr>", table.numbers ? " class=\"num\"" : "");
  for (const std::string& cell : table.header) html += fmt::format("<th scope=\"col\">{}</th>", cell);
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i]) : fmt::format("<td>{}</td>", row[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_choice(const std::string& group, const std::vector<std::pair<std::string, std::string>>& views) {
  if (views.size() == 1) return views.front().second;
  std::string inputs, bodies;
  for (size_t i = 0; i < views.size(); ++i) {
    inputs += fmt::format("<label><input type=\"radio\" name=\"{}\"{}><span>{}</span></label>", group,
                          i == 0 ? " checked" : "", html_escape(views[i].first));
    bodies += fmt::format("<div class=\"view\">{}</div>", views[i].second);
  }
  return fmt::format("<div class=\"choice\"><div class=\"tabs\">{}</div>\n{}</div>\n", inputs, bodies);
}

std::string html_section(std::string_view title, std::string_view explanation, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}{}</section>\n", html_escape(title),
                     explanation.empty() ? "" : fmt::format("<p class=\"why\">{}</p>\n", explanation), body);
}

std::string html_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string html = "<ul class=\"notes\">";
  for (const std::string& note : notes) html += fmt::format("<li>{}</li>", html_escape(note));
  return html + "</ul>\n";
}

std::string status_pill(const std::string& status) {
  const char* kind = status == "finished" || status == "imported"        ? "good"
                     : status == "running" || status == "early stopping" ? "busy"
                                                                         : "warn";
  return fmt::format("<span class=\"pill {}\">{}</span>", kind, html_escape(status));
}

}  // namespace brisk
