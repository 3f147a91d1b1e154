#include "base/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using OrderedJson = nlohmann::ordered_json;
using SortedJson = nlohmann::json;

constexpr JsonLimits kJobJson = {.depth = 32, .keys_of_one = 1000};

// The text of nlohmann's exception without its prefix and position:
// "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing ...", or
// "[json.exception.out_of_range.406] number overflow parsing '1e400'".
std::string without_position(const std::exception& error) {
  std::string what = error.what();
  const size_t column = what.find("column ");
  const std::string_view mark = column == std::string::npos ? "] " : ": ";
  const size_t end = what.find(mark, column == std::string::npos ? 0 : column);
  if (end != std::string::npos) what = what.substr(end + 2);
  // The last token may be a string of any length.
  if (what.size() > 300) what = what.substr(0, 150) + " ... " + what.substr(what.size() - 145);
  return what;
}

// Builds the tree from the parser's events. Containers grow at their end only, so `open_` stays valid: nothing is put into
// a container before those inside it are closed.
template <typename Json>
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(const JsonLimits& limits, std::vector<std::string>* keys_found_twice = nullptr)
      : limits_(limits), keys_found_twice_(keys_found_twice) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(typename Json::number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(typename Json::number_float_t value, const std::string& /*text*/) override {
    return add(value) != nullptr;
  }
  bool string(std::string& value) override { return add(std::move(value)) != nullptr; }
  bool binary(typename Json::binary_t& /*value*/) override { return false; }  // JSON has none

  bool start_object(size_t /*size*/) override { return open(Json::object()); }
  bool key(std::string& value) override {
    if (static_cast<int64_t>(open_.back()->size()) >= limits_.keys_of_one)
      return fail(fmt::format("an object has more than {} keys", limits_.keys_of_one));
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() override {
    if (!check_keys(open_.back()->template get_ref<typename Json::object_t&>())) return false;
    return close();
  }
  bool start_array(size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool parse_error(size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    if (problem_) return false;
    problem_ = JsonProblem{without_position(error), position};
    is_syntax_error_ = dynamic_cast<const typename Json::parse_error*>(&error) != nullptr;
    return false;
  }

  Json take() { return problem_ ? Json(Json::value_t::discarded) : std::move(root_); }
  const std::optional<JsonProblem>& problem() const { return problem_; }
  bool is_syntax_error() const { return is_syntax_error_; }

 private:
  bool fail(std::string what) {
    problem_ = JsonProblem{std::move(what), 0};
    return false;
  }

  Json* add(Json value) {
    if (++values_ > limits_.values) {
      fail(fmt::format("more than {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& list = parent.template get_ref<typename Json::array_t&>();
      list.push_back(std::move(value));
      return &list.back();
    }
    auto& object = parent.template get_ref<typename Json::object_t&>();
    if constexpr (std::is_same_v<Json, OrderedJson>) {
      // Past ordered_map's own insertion, which looks for the key in all that are there: check_keys() looks once.
      object.emplace_back(keys_.back(), std::move(value));
      return &object.back().second;
    } else {
      const auto [place, is_new] = object.emplace(keys_.back(), std::move(value));
      if (!is_new && !found_twice(keys_.back())) return nullptr;
      return &place->second;
    }
  }

  bool open(Json container) {
    if (static_cast<int64_t>(open_.size()) >= limits_.depth)
      return fail(fmt::format("objects and lists are nested more than {} levels deep", limits_.depth));
    Json* place = add(std::move(container));
    if (place == nullptr) return false;
    open_.push_back(place);
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  // Equal keys are next to each other in the order of their letters. Of those found twice the first stays.
  bool check_keys(OrderedJson::object_t& object) {
    auto* const items = object.data();  // ordered_map's own [] looks for a key
    std::vector<size_t> order(object.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const int compared = items[a].first.compare(items[b].first);
      return compared != 0 ? compared < 0 : a < b;
    });
    std::vector<size_t> again;  // places of keys that were there before
    for (size_t i = 1; i < order.size(); ++i) {
      if (items[order[i]].first == items[order[i - 1]].first) again.push_back(order[i]);
    }
    if (again.empty()) return true;
    std::sort(again.begin(), again.end());
    for (const size_t i : again) {
      if (!found_twice(items[i].first)) return false;
    }
    OrderedJson::object_t unique;
    size_t next = 0;
    for (size_t i = 0; i < object.size(); ++i) {
      if (next < again.size() && again[next] == i) {
        ++next;
      } else {
        unique.emplace_back(items[i].first, std::move(items[i].second));
      }
    }
    object.swap(unique);
    return true;
  }
  bool check_keys(SortedJson::object_t& /*object*/) { return true; }  // seen as they came

  bool found_twice(const std::string& key) {
    if (keys_found_twice_ == nullptr) return fail(fmt::format("the key {} is given twice", in_quotes(key)));
    std::string path;
    for (size_t i = 0; i + 1 < keys_.size(); ++i) {
      if (open_[i]->is_object()) path += printable(keys_[i]) + ".";
    }
    if (keys_found_twice_->size() < kMostProblems) keys_found_twice_->push_back(path + printable(key));
    return true;
  }

  const JsonLimits limits_;
  std::vector<std::string>* keys_found_twice_;
  Json root_;
  std::vector<Json*> open_;        // the objects and lists around what comes next, the outermost first
  std::vector<std::string> keys_;  // of each of them, the last one
  int64_t values_ = 0;
  std::optional<JsonProblem> problem_;
  bool is_syntax_error_ = false;
};

std::string syntax_error(std::string_view text, const std::string& source, const JsonProblem& problem) {
  const size_t end = std::min(problem.byte == 0 ? 0 : problem.byte - 1, text.size());
  const std::string_view before = text.substr(0, end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n');
  const size_t column = 1 + end - (line_start == std::string_view::npos ? 0 : line_start + 1);
  const auto says = [&](const char* words) { return problem.what.find(words) != std::string::npos; };
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
  return fmt::format("{}:{}:{}: {}{}", source, line, column, problem.what, fix);
}

}  // namespace

template <typename Json>
Json parse_json_or_discard(std::string_view text, const JsonLimits& limits, JsonProblem* problem) {
  TreeBuilder<Json> builder(limits);
  Json::sax_parse(text, &builder);
  if (problem != nullptr && builder.problem()) *problem = *builder.problem();
  return builder.take();
}

template <typename Json>
Json parse_json(std::string_view text, const std::string& source, std::string_view fix, const JsonLimits& limits) {
  JsonProblem problem;
  Json json = parse_json_or_discard<Json>(text, limits, &problem);
  if (!json.is_discarded()) return json;
  if (problem.byte == 0) user_error("{}: not JSON that brisk reads: {}; {}", source, problem.what, fix);
  user_error("{}: not valid JSON at byte {} of {}: {}; {}", source, problem.byte, text.size(), problem.what, fix);
}

template <typename Json>
Json parse_own_json(std::string_view text) {
  std::vector<std::string> ignored;  // keys found twice
  TreeBuilder<Json> builder({.values = INT64_MAX}, &ignored);
  Json::sax_parse(text, &builder);
  BRISK_CHECK(!builder.problem(), "byte {}: {}", builder.problem()->byte, builder.problem()->what);
  return builder.take();
}

OrderedJson parse_job_json(std::string_view text, const std::string& source, std::vector<std::string>& problems) {
  std::vector<std::string> twice;
  TreeBuilder<OrderedJson> builder(kJobJson, &twice);
  OrderedJson::sax_parse(text, &builder, nlohmann::detail::input_format_t::json, true, true);
  if (const std::optional<JsonProblem>& problem = builder.problem()) {
    if (builder.is_syntax_error()) throw UserError(syntax_error(text, source, *problem));
    user_error("{}: {}{}", source, problem->what, problem->byte > 0 ? "; write a smaller number" : "");
  }
  for (const std::string& path : twice) {
    if (problems.size() < kMostProblems)
      problems.push_back(fmt::format("{}: {}: given twice; remove one of them", source, path));
  }
  return builder.take();
}

template <typename Json>
std::string json_in_message(const Json& value) {
  constexpr int64_t kColumns = 60;
  if (value.is_object()) return value.empty() ? "an object {}" : "an object {...}";
  if (value.is_array()) return value.empty() ? "a list []" : "a list [...]";
  if (!value.is_string()) return value.dump();
  return in_quotes(value.template get_ref<const std::string&>(), kColumns);
}

template OrderedJson parse_json(std::string_view, const std::string&, std::string_view, const JsonLimits&);
template SortedJson parse_json(std::string_view, const std::string&, std::string_view, const JsonLimits&);
template OrderedJson parse_json_or_discard(std::string_view, const JsonLimits&, JsonProblem*);
template SortedJson parse_json_or_discard(std::string_view, const JsonLimits&, JsonProblem*);
template OrderedJson parse_own_json(std::string_view);
template SortedJson parse_own_json(std::string_view);
template std::string json_in_message(const OrderedJson&);
template std::string json_in_message(const SortedJson&);

}  // namespace brisk
