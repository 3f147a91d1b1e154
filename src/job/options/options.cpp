#include "job/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text/spelling.h"

namespace brisk {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

std::string leaf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string text_of_list(const std::vector<int64_t>& values) {
  return values.size() == 1 ? fmt::format("{}", values.front()) : fmt::format("[{}]", fmt::join(values, ", "));
}

std::string text_of(const Option::Value& value) {
  return std::visit(
      []<typename T>(const T& inner) -> std::string {
        if constexpr (std::is_same_v<T, std::string>) return quoted(inner);
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) return text_of_list(inner);
        return fmt::format("{}", inner);
      },
      value);
}

void set_field(const Option::Field& field, const Option::Value& value) {
  std::visit([&]<typename T>(const T& inner) { *std::get<T*>(field) = inner; }, value);
}

}  // namespace

Option::Option(std::string path, std::shared_ptr<OptionItems> items, std::string help, OnResume on_resume)
    : path(std::move(path)), field(std::move(items)), help(std::move(help)), on_resume(on_resume) {
  default_text = value_text();
}

Option& Option::at_least(double bound) {
  least = bound;
  return *this;
}
Option& Option::above(double bound) {
  least = bound;
  least_open = true;
  return *this;
}
Option& Option::at_most(double bound) {
  most = bound;
  return *this;
}
Option& Option::below(double bound) {
  most = bound;
  most_open = true;
  return *this;
}
Option& Option::one_of(std::vector<std::string> words) {
  choices = std::move(words);
  return *this;
}
Option& Option::same_as(std::string word, std::string choice) {
  BRISK_CHECK(std::find(choices.begin(), choices.end(), choice) != choices.end(), "{}: {}", path, choice);
  choice_aliases.emplace_back(std::move(word), std::move(choice));
  return *this;
}
Option& Option::also(std::vector<std::string> names) {
  aliases = std::move(names);
  return *this;
}
Option& Option::not_a_choice(std::vector<std::string> no_words, std::string answer) {
  no_choices.emplace_back(std::move(no_words), std::move(answer));
  return *this;
}
Option& Option::object_of(std::vector<std::pair<std::string, std::string>> keys_and_paths) {
  object_keys = std::move(keys_and_paths);
  return *this;
}

Option& Option::flag(std::string flag_name, std::string value, std::string otherwise) {
  flags.push_back({std::move(flag_name), std::move(value), std::move(otherwise)});
  return *this;
}
Option& Option::automatic(double value, std::string rule) {
  automatic_value = value;
  automatic_rule = std::move(rule);
  default_text = value_text();
  return *this;
}
Option& Option::automatic(std::string rule) {
  automatic_rule = std::move(rule);
  default_text = value_text();
  return *this;
}
Option& Option::in(std::string unit_name) {
  unit = std::move(unit_name);
  return *this;
}
Option& Option::or_flag() {
  BRISK_CHECK(std::holds_alternative<int64_t*>(field), "{}", path);
  accepts_flag = true;
  return *this;
}
Option& Option::or_word(std::string word, int64_t value) {
  BRISK_CHECK(std::holds_alternative<int64_t*>(field), "{}", path);
  words.emplace_back(std::move(word), value);
  default_text = value_text();
  return *this;
}

Option& Option::read_as(int64_t written, int64_t value) {
  BRISK_CHECK(std::holds_alternative<int64_t*>(field), "{}", path);
  other_numbers.emplace_back(written, value);
  return *this;
}
Option& Option::instead_of_fraction(std::string answer) {
  BRISK_CHECK(std::holds_alternative<int64_t*>(field), "{}", path);
  fraction_answer = std::move(answer);
  return *this;
}

Option& Option::only_with(Condition condition) {
  requirements.push_back({std::move(condition), true});
  return *this;
}
Option& Option::used_with(Condition condition) {
  requirements.push_back({std::move(condition), false});
  return *this;
}
Option& Option::everywhere() {
  applies_everywhere = true;
  return *this;
}
Option& Option::must_with(Condition condition, std::function<bool()> allows, std::string expectation) {
  restrictions.push_back({std::move(condition), std::move(allows), std::move(expectation)});
  return *this;
}
Option& Option::decided_by_data() {
  is_decided_by_data = true;
  return *this;
}
Option& Option::with_source(WithSource rule) {
  source_rule = rule;
  return *this;
}
Option& Option::default_with(Condition condition, Value value) {
  other_defaults.push_back({std::move(condition), std::move(value)});
  return *this;
}
Option& Option::smoke_test_at_most(int64_t most_there) {
  int64_t* number = std::get<int64_t*>(field);
  return smoke_test_rule([number, most_there] { *number = std::min(*number, most_there); });
}
Option& Option::smoke_test_value(Value value) {
  return smoke_test_rule([field = field, value = std::move(value)] { set_field(field, value); });
}
Option& Option::smoke_test_rule(std::function<void()> rule) {
  smoke_test = std::move(rule);
  return same_in_smoke_test();
}
Option& Option::same_in_smoke_test() {
  smoke_test_said = true;
  return *this;
}

const Condition* Option::unmet_condition(bool required) const {
  for (const Requirement& requirement : requirements) {
    if ((requirement.required || !required) && !requirement.condition.holds()) return &requirement.condition;
  }
  return nullptr;
}

void Option::take(const Option& other) const {
  BRISK_CHECK(path == other.path, "{} is not {}", other.path, path);
  std::visit(
      [&]<typename T>(const T& mine) {
        if constexpr (std::is_pointer_v<T>) {
          *mine = *std::get<T>(other.field);
        } else {
          mine->clear();  // lists of items begin empty
        }
      },
      field);
}

std::string Option::meaning() const {
  if (requirements.empty()) return help;
  std::string places;
  bool after_with = false;  // "with a and b", "with a and without b"
  for (const Requirement& requirement : requirements) {
    const std::string& where = requirement.condition.where;
    const bool plain = !where.starts_with("if ") && !where.starts_with("without ");
    places += fmt::format("{}{}{}", places.empty() ? "" : " and ", plain && !after_with ? "with " : "", where);
    after_with = plain;
  }
  return fmt::format("{} (only {})", help, places);
}

std::string Option::other_defaults_text() const {
  std::string text;
  for (const auto& [condition, value] : other_defaults)
    text += fmt::format("; {} with {}", text_of(value), condition.where);
  return text;
}

std::string Option::section() const {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string Option::name() const { return leaf(path); }

std::string Option::alias_path(const std::string& alias) const {
  if (alias.starts_with('.')) return alias.substr(1);
  if (alias.find('.') != std::string::npos || section().empty()) return alias;
  return section() + "." + alias;
}

bool Option::has_word_for_flag() const {
  const auto is_flag = [](const auto& alias) { return alias.first == "true" || alias.first == "false"; };
  return std::any_of(choice_aliases.begin(), choice_aliases.end(), is_flag);
}

bool Option::is_automatic() const {
  if (automatic_rule.empty()) return false;
  if (const auto* number = std::get_if<int64_t*>(&field)) return static_cast<double>(**number) == automatic_value;
  if (const auto* number = std::get_if<double*>(&field)) return **number == automatic_value;
  if (const auto* text = std::get_if<std::string*>(&field)) return (*text)->empty();
  if (const auto* list = std::get_if<std::vector<std::string>*>(&field)) return (*list)->empty();
  if (const auto* list = std::get_if<std::vector<int64_t>*>(&field)) return (*list)->empty();
  return false;
}

bool Option::is_open() const {
  const auto* text = std::get_if<std::string*>(&field);
  return is_automatic() || (text != nullptr && (*text)->empty());
}

std::string Option::value_text() const {
  if (is_automatic() && automatic_value) return "\"auto\"";
  if (const auto* number = std::get_if<int64_t*>(&field)) {
    for (const auto& [word, value] : words) {
      if (**number == value) return quoted(word);
    }
  }
  struct Writer {
    std::string operator()(bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(int64_t* value) const { return fmt::format("{}", *value); }
    std::string operator()(double* value) const { return fmt::format("{}", *value); }
    std::string operator()(std::string* value) const { return brisk::quoted(*value); }
    std::string operator()(std::vector<std::string>* values) const {
      std::vector<std::string> words;
      for (const std::string& value : *values) words.push_back(quoted(value));
      return fmt::format("[{}]", fmt::join(words, ", "));
    }
    std::string operator()(std::vector<int64_t>* values) const { return text_of_list(*values); }
    std::string operator()(NamedNumbers* value) const {
      if (!value->word.empty()) return brisk::quoted(value->word);
      std::vector<std::string> entries;
      for (const auto& [name, number] : value->numbers)
        entries.push_back(fmt::format("{}: {}", brisk::quoted(name), number));
      return fmt::format("{{{}}}", fmt::join(entries, ", "));
    }
    std::string operator()(const std::shared_ptr<OptionItems>& items) const {
      std::vector<std::string> words;
      for (const std::vector<Option>& item : items->items()) {
        std::vector<std::string> given;
        for (const Option& option : item) {
          if (option.value_text() == option.default_text) continue;
          given.push_back(fmt::format("{}: {}", quoted(option.path), option.value_text()));
        }
        const bool plain = given.size() == 1 && item[0].value_text() != item[0].default_text;
        words.push_back(plain ? item[0].value_text() : fmt::format("{{{}}}", fmt::join(given, ", ")));
      }
      return fmt::format("[{}]", fmt::join(words, ", "));
    }
  };
  return std::visit(Writer{}, field);
}

std::string Option::range() const {
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, ", "));
  if (least && most) {
    return fmt::format("{}{} to {}{}", least_open ? "above " : "", *least, most_open ? "below " : "", *most);
  }
  if (least) return fmt::format("{} {}", least_open ? "above" : "at least", *least);
  if (most) return fmt::format("{} {}", most_open ? "below" : "at most", *most);
  return "";
}

std::string Option::expected() const {
  const bool has_auto = automatic_value.has_value();
  const std::string bounds = range();
  const auto with_bounds = [&](const char* noun) {
    std::string text = noun;
    if (!bounds.empty())
      text += (least && !most && !least_open ? " of " : least && most && !least_open ? " from " : " ") + bounds;
    if (accepts_flag) text += ", true or false";
    for (const auto& [word, value] : words) text += " or " + quoted(word);
    if (has_auto) text += " or \"auto\"";
    return text;
  };
  if (std::holds_alternative<bool*>(field)) return "true or false";
  if (std::holds_alternative<int64_t*>(field)) return with_bounds("an integer");
  if (std::holds_alternative<double*>(field)) return with_bounds("a number");
  if (std::holds_alternative<std::vector<std::string>*>(field)) return "a string or a list of strings";
  if (std::holds_alternative<std::vector<int64_t>*>(field)) return with_bounds("an integer") + ", or a list of these";
  if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&field)) {
    const std::vector<Option> example = (*items)->example();
    return fmt::format("a string, or a list of strings and objects such as {{{}: \"...\", {}: {}}}",
                       quoted(example.at(0).path), quoted(example.at(1).path), example.at(1).default_text);
  }
  if (std::holds_alternative<NamedNumbers*>(field))
    return fmt::format("one of {}, or a number for each name: {{\"a\": 1, \"b\": 2}}", fmt::join(choices, ", "));
  if (choices.size() == 1) return quoted(choices[0]);
  if (!choices.empty()) return "one of " + bounds;
  return "a string";
}

void shrink_for_smoke_test(const std::vector<Option>& options) {
  for (const Option& option : options) {
    if (option.smoke_test) option.smoke_test();
  }
}

std::vector<std::string> apply_other_defaults(const std::vector<Option>& options, const std::set<std::string>& given) {
  std::vector<std::pair<std::string, std::vector<std::string>>> changes;  // by condition, in the order they are met
  for (const Option& option : options) {
    if (given.contains(option.path)) continue;
    const Option::OtherDefault* chosen = nullptr;
    for (const Option::OtherDefault& other : option.other_defaults) {
      if (other.condition.holds()) chosen = &other;
    }
    const std::string before = option.value_text();
    if (chosen != nullptr) set_field(option.field, chosen->value);
    if (chosen == nullptr || option.value_text() == before) continue;
    const std::string& where = chosen->condition.where;
    auto place = std::find_if(changes.begin(), changes.end(), [&](const auto& entry) { return entry.first == where; });
    if (place == changes.end()) place = changes.insert(place, {where, {}});
    place->second.push_back(fmt::format("{} = {}", option.path, option.value_text()));
  }
  std::vector<std::string> lines;
  for (const auto& [where, values] : changes) {
    lines.push_back(fmt::format("defaults with {}: {}", where, fmt::join(values, ", ")));
  }
  return lines;
}

void take_found(const std::vector<Option>& options, const FoundValues& found) {
  for (const auto& [path, value] : found) {
    const auto option = std::ranges::find(options, path, &Option::path);
    BRISK_CHECK(option != options.end() && option->is_decided_by_data, "{} is not decided by data", path);
    set_field(option->field, value);
  }
}

void recall_found(const std::vector<Option>& options, const std::vector<Option>& saved) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].is_decided_by_data && options[i].is_open()) options[i].take(saved.at(i));
  }
}

void check_options_apply(const std::vector<Option>& options, const std::vector<Option>& defaults) {
  for (size_t i = 0; i < options.size(); ++i) {
    for (const Option::Restriction& restriction : options[i].restrictions) {
      if (!restriction.condition.holds() || restriction.allows()) continue;
      user_error("{} = {} is not possible: {} has {}; remove it", options[i].path, options[i].value_text(),
                 restriction.condition.where, restriction.expected);
    }
    const Condition* unmet = options[i].unmet_condition(true);
    if (unmet == nullptr || options[i].value_text() == defaults.at(i).value_text()) continue;
    user_error("{} does not apply {}; remove it", options[i].path,
               unmet->otherwise ? unmet->otherwise() : "without " + unmet->where);
  }
}

std::vector<std::string> options_without_effect(const std::vector<Option>& options,
                                                const std::set<std::string>& given) {
  std::vector<std::string> lines;
  if (given.size() == options.size()) return lines;  // written out by brisk: nobody asked for it
  for (const Option& option : options) {
    const Condition* unmet = option.unmet_condition();
    if (unmet == nullptr || !given.contains(option.path)) continue;
    if (option.value_text() == option.default_text || option.is_automatic()) continue;
    const auto usual = [&](const Option::OtherDefault& other) {
      return other.condition.holds() && text_of(other.value) == option.value_text();
    };
    if (std::any_of(option.other_defaults.begin(), option.other_defaults.end(), usual)) continue;
    lines.push_back(fmt::format("{} = {} has no effect {}", option.path, option.value_text(),
                                unmet->otherwise ? unmet->otherwise() : "without " + unmet->where));
  }
  return lines;
}

std::map<std::string, std::string> values_fixed_on_resume(const std::vector<Option>& options) {
  std::map<std::string, std::string> values;
  for (const Option& option : options) {
    if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
      const std::vector<std::vector<Option>> all = (*items)->items();
      for (size_t i = 0; i < all.size(); ++i) {
        for (const Option& inner : all[i]) {
          if (inner.on_resume == OnResume::may_change || inner.value_text() == inner.default_text) continue;
          values.emplace(fmt::format("{}.{}.{}", option.path, i, inner.path), inner.value_text());
        }
      }
    } else if (option.on_resume != OnResume::may_change) {
      values.emplace(option.path, option.value_text());
    }
  }
  return values;
}

std::string nearest_option(const std::vector<Option>& options, const std::string& path) {
  const std::string wanted = plain_spelling(leaf(path));
  const std::string section = path.find('.') == std::string::npos ? "" : path.substr(0, path.find('.'));
  std::string best;
  // Twice the distance, plus one for another section: the same section wins between equals only.
  int64_t best_cost = std::numeric_limits<int64_t>::max();
  int64_t best_distance = best_cost;
  const auto consider = [&](const Option& option, const std::string& candidate) {
    const std::string spelled = plain_spelling(leaf(candidate));
    if (!could_be_near(wanted, spelled)) return;
    const int64_t distance = edit_distance(wanted, spelled);
    const bool same_section = option.alias_path(candidate).starts_with(section + ".") ||
                              (section.empty() && option.alias_path(candidate).find('.') == std::string::npos);
    const int64_t cost = 2 * distance + (same_section ? 0 : 1);
    if (cost < best_cost) {
      best_cost = cost;
      best_distance = distance;
      best = option.path;
    }
  };
  for (const Option& option : options) {
    consider(option, option.path);
    for (const std::string& alias : option.aliases) consider(option, alias);
  }
  return near_enough(best_distance, wanted.size()) ? best : "";
}

}  // namespace brisk
