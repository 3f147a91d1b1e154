#include "base/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 32;        // a job has depth four; the stack would overflow after thousands
constexpr size_t kMostKeys = 1000;  // of one object; looking up a key is linear in it

std::string syntax_error(const std::string& text, const std::string& source, const Json::parse_error& error) {
  const size_t end = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
  const std::string before = text.substr(0, end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n');
  const size_t column = 1 + end - (line_start == std::string::npos ? 0 : line_start + 1);
  const std::string what = json_problem(error);
  const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
  const char offending = end < text.size() ? text[end] : '\0';
  const char* fix = "";
  if (says("object key - unexpected '}'") || says("value - unexpected ']'")) {
    fix = "; remove the comma before it";
  } else if (says("object - unexpected string literal") || says("array - unexpected string literal")) {
    fix = "; put a comma before it";
  } else if (says("invalid literal") && offending == '\'') {
    fix = "; JSON takes double quotation marks";
  } else if (says("invalid literal") && std::string_view("TFN").find(offending) != std::string_view::npos) {
    fix = "; JSON spells true, false and null in small letters";
  } else if (says("unexpected end of input")) {
    fix = "; a closing bracket or quotation mark is missing";
  }
  return fmt::format("{}:{}:{}: {}{}", source, line, column, what, fix);
}

}  // namespace

std::string json_problem(const std::exception& error) {
  std::string what = error.what();
  // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing ...", or
  // "[json.exception.out_of_range.406] number overflow parsing '1e400'".
  const size_t column = what.find("column ");
  const std::string_view mark = column == std::string::npos ? "] " : ": ";
  const size_t end = what.find(mark, column == std::string::npos ? 0 : column);
  if (end != std::string::npos) what = what.substr(end + 2);
  // The last token may be a string of any length.
  if (what.size() > 300) what = what.substr(0, 150) + " ... " + what.substr(what.size() - 145);
  return what;
}

nlohmann::ordered_json parse_json(const std::string& text, const std::string& source,
                                  std::vector<std::string>& problems) {
  // nlohmann silently takes the last of two equal keys.
  std::map<int, std::set<std::string>> keys_at;
  std::map<int, std::string> last_key_at;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) user_error("{}: objects and lists are nested more than {} levels deep", source, kDeepest);
    if (event == Json::parse_event_t::object_start) keys_at[depth + 1].clear();
    if (event == Json::parse_event_t::key) {
      if (keys_at[depth].size() > kMostKeys) user_error("{}: an object has more than {} keys", source, kMostKeys);
      const std::string key = parsed.get<std::string>();
      last_key_at[depth] = key;
      if (!keys_at[depth].insert(key).second && problems.size() < kMostProblems) {
        std::string path = key;
        for (int up = depth - 1; up >= 1; --up) path = last_key_at[up] + "." + path;
        problems.push_back(fmt::format("{}: {}: given twice; remove one of them", source, path));
      }
    }
    return true;
  };
  try {
    return Json::parse(text, watch, true, true);
  } catch (const Json::parse_error& error) {
    throw UserError(syntax_error(text, source, error));
  } catch (const Json::exception& error) {
    user_error("{}: {}; write a smaller number", source, json_problem(error));  // too large for a double
  }
}

}  // namespace brisk
