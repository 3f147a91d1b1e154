#include "score/markdown_page.h"

#include <algorithm>
#include <unordered_map>

#include "score/bleu_words.h"

namespace brisk {

namespace {

size_t space_at(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  const CodePoint character = decode_utf8(text, at);
  return is_python_space(character.value) ? character.length : 0;
}

// From the left, each match replaced: match(at) is how long the one that begins there is, 0: there is none.
template <typename Match>
void replace_matches(std::string& text, const Match& match, std::string_view replacement) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (const size_t length = match(at); length > 0) {
      result += replacement;
      at += length;
    } else {
      result += text[at++];
    }
  }
  text = std::move(result);
}

// The literal, and a white-space character before or behind it.
void join(std::string& text, std::string_view literal, bool space_before, std::string_view replacement) {
  replace_matches(
      text,
      [&](size_t at) -> size_t {
        const size_t before = space_before ? space_at(text, at) : 0;
        if ((space_before && before == 0) || text.compare(at + before, literal.size(), literal) != 0) return 0;
        const size_t end = at + before + literal.size(), behind = space_before ? 0 : space_at(text, end);
        return space_before || behind > 0 ? before + literal.size() + behind : 0;
      },
      replacement);
}

void replace_characters(std::string& text, std::string_view characters) {
  for (char& c : text) {
    if (characters.find(c) != std::string_view::npos) c = ' ';
  }
}

// What the decoding of tokens leaves, and the marks within lines.
std::string clean(std::string text) {
  replace_matches(
      text,
      [&](size_t at) -> size_t {
        for (const std::string_view token : {"<bos>", "<eos>", "<pad>", "<unk>"}) {
          if (text.compare(at, token.size(), token) == 0) return token.size();
        }
        return 0;
      },
      "");
  replace_matches(
      text,
      [&](size_t at) -> size_t {
        const size_t space = space_at(text, at), next = at + space + 2;
        const bool joins = space > 0 && text.compare(at + space, 2, "##") == 0;
        return joins && next < text.size() && space_at(text, next) == 0 ? space + 2 : 0;
      },
      "");
  join(text, "\\", false, "\\");
  replace_matches(
      text,
      [&](size_t at) -> size_t {
        size_t end = at;
        for (int i = 0; i < 3; ++i) {
          const size_t space = space_at(text, end);
          if (space == 0) return 0;
          end += space;
          if (i < 2 && (end >= text.size() || text[end++] != '*')) return 0;
        }
        return end - at;
      },
      "**");
  join(text, "{", false, "{");
  join(text, "}", true, "}");
  join(text, "}", true, "}");
  join(text, "\\begin", false, "\\begin");
  join(text, "\\end", false, "\\end");
  constexpr std::string_view kEndTable = "\\end{table}";
  replace_matches(
      text, [&](size_t at) { return text.compare(at, kEndTable.size(), kEndTable) == 0 ? kEndTable.size() : 0; },
      "\\end{table}   ");
  replace_characters(text, "\n*_");
  return text;
}

// From each `begin` to the next `end`.
void remove_between(std::string& text, std::string_view begin, std::string_view end) {
  std::string result;
  size_t at = 0;
  for (;;) {
    const size_t from = text.find(begin, at);
    const size_t to = from == std::string::npos ? from : text.find(end, from + begin.size());
    if (to == std::string::npos) break;
    result.append(text, at, from - at) += ' ';
    at = to + end.size();
  }
  text = result.append(text, at);
}

// Calls visit(line, end of line) for each; the end is "\n" for LF, CRLF and CR, or nothing where the page ends.
template <typename Visit>
void for_each_line(std::string_view page, const Visit& visit) {
  while (!page.empty()) {
    const size_t end = std::min(page.find_first_of("\r\n"), page.size());
    visit(page.substr(0, end), std::string_view(end < page.size() ? "\n" : ""));
    const bool is_pair = page.substr(end, 2) == "\r\n";
    page.remove_prefix(std::min(page.size(), end + (is_pair ? 2 : 1)));
  }
}

std::string_view without_outer_spaces(std::string_view text) {
  size_t begin = 0, end = 0, at = 0;
  while (const size_t space = space_at(text, begin)) begin += space;
  for (at = end = begin; at < text.size();) {
    const size_t space = space_at(text, at);
    at += space > 0 ? space : decode_utf8(text, at).length;
    if (space == 0) end = at;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::string text_of_markdown(std::string_view page, MarkdownParts parts) {
  std::string text;
  for_each_line(page, [&](std::string_view line, std::string_view end) {
    if (line.data() != page.data()) text += ' ';
    (text += line) += end;
  });
  text = clean(std::move(text));
  replace_characters(text, "#");
  if (parts == MarkdownParts::kTextOnly) {
    remove_between(text, "\\begin{table}", "\\end{table}");
    remove_between(text, "\\begin{tabular}", "\\end{tabular}");
    remove_between(text, "\\(", "\\)");
    remove_between(text, "\\[", "\\]");
  }
  return text;
}

OrderedTree tree_of_markdown(std::string_view page) {
  OrderedTree tree;
  const int root = tree.add(OrderedTree::kNone), title = tree.add(root);
  std::unordered_map<std::string, int> headings;  // the first of each text
  int above = title;                              // what the next line is below
  for_each_line(page, [&](std::string_view raw, std::string_view) {
    const std::string cleaned = clean(std::string(raw));
    const std::string_view line = without_outer_spaces(cleaned);
    if (line.empty()) return;
    if (line[0] != '#') {
      tree.add(above);
      return;
    }
    std::string text(line);
    std::erase(text, '#');
    const int heading = tree.add(root, /*is_blank=*/without_outer_spaces(text).empty());
    above = text.empty() ? title : headings.try_emplace(std::move(text), heading).first->second;
  });
  return tree;
}

}  // namespace brisk
