#include "job/options/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "base/text/spelling.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: beyond it a double is not exact, and no option needs it

bool in_range(const Option& option, double value) {
  if (std::isnan(value)) return false;
  if (option.least && (option.least_open ? value <= *option.least : value < *option.least)) return false;
  if (option.most && (option.most_open ? value >= *option.most : value > *option.most)) return false;
  return true;
}

// "Text-Classification" is text_classification.
bool same_word(std::string_view a, std::string_view b) {
  const auto plain = [](char letter) {
    if (letter == '-' || letter == ' ') return '_';
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return plain(x) == plain(y); });
}

// The choice that a word stands for, or the word where anything goes; false where it is none.
bool choose(const Option& option, std::string word, const std::string& source, std::vector<std::string>& notes,
            std::string& chosen) {
  if (!option.choices.empty()) {
    const auto is_it = [&](const std::string& choice) { return same_word(choice, word); };
    const auto choice = std::find_if(option.choices.begin(), option.choices.end(), is_it);
    const auto alias = std::find_if(option.choice_aliases.begin(), option.choice_aliases.end(),
                                    [&](const auto& entry) { return is_it(entry.first); });
    if (choice != option.choices.end()) {
      word = *choice;
    } else if (alias != option.choice_aliases.end()) {
      notes.push_back(fmt::format("{}: {}: read \"{}\" as \"{}\"", source, option.path, word, alias->second));
      word = alias->second;
    } else {
      return false;
    }
  }
  chosen = std::move(word);
  return true;
}

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string fix_for(const Option& option, const Json& value) {
  const std::string name = option.name();
  const bool wants_bare =
      std::holds_alternative<bool*>(option.field) || std::holds_alternative<int64_t*>(option.field) ||
      std::holds_alternative<std::vector<int64_t>*>(option.field) || std::holds_alternative<double*>(option.field);
  if (wants_bare && value.is_string()) {
    const Json inner = parse_json_or_discard(value.get<std::string>());
    const bool is_flag = std::holds_alternative<bool*>(option.field);
    if (is_flag ? inner.is_boolean() : inner.is_number()) {
      return fmt::format("remove the quotation marks: \"{}\": {}", name, inner.dump());
    }
  }
  if (!wants_bare && (value.is_number() || value.is_boolean())) {
    return fmt::format("put it in quotation marks: \"{}\": \"{}\"", name, value.dump());
  }
  if (option.automatic_value && value.is_number() && value == *option.automatic_value) {
    return fmt::format("to let brisk choose, write \"{}\": \"auto\"{}", name,
                       option.value_text() == "\"auto\"" ? ", or leave it out" : "");
  }
  if (std::holds_alternative<int64_t*>(option.field) && !option.most && value.is_number() &&
      std::abs(value.get<double>()) > kLargestInteger) {
    return fmt::format("the largest is {:.0f}", kLargestInteger);
  }
  if (!option.fraction_answer.empty() && value.is_number_float() &&
      value.get<double>() != std::floor(value.get<double>())) {
    return fmt::format(fmt::runtime(option.fraction_answer), value.get<double>());
  }
  if (!option.choices.empty() && value.is_string()) {
    for (const auto& [no_words, answer] : option.no_choices) {
      const auto said = [&](const std::string& word) { return same_word(word, value.get_ref<const std::string&>()); };
      if (std::any_of(no_words.begin(), no_words.end(), said)) return answer;
    }
    std::vector<std::string> words = option.choices;
    for (const auto& [word, choice] : option.choice_aliases) words.push_back(word);
    const std::string nearest = nearest_word(value.get<std::string>(), words);
    if (!nearest.empty()) return fmt::format("did you mean \"{}\"?", nearest);
  }
  const std::string without = option.value_text();
  if (without == "\"\"" || without == "[]") return "leave it out for the default";
  return fmt::format("leave it out for the default, {}", without);
}

bool assign(const Option& option, const Json& value, const std::string& source, std::vector<std::string>& notes) {
  if (option.automatic_value && value == "auto") {
    if (auto* const* number = std::get_if<int64_t*>(&option.field))
      **number = static_cast<int64_t>(*option.automatic_value);
    if (auto* const* number = std::get_if<double*>(&option.field)) **number = *option.automatic_value;
    return true;
  }
  if (auto* const* flag = std::get_if<bool*>(&option.field)) {
    if (!value.is_boolean()) return false;
    **flag = value.get<bool>();
    return true;
  }
  if (auto* const* number = std::get_if<int64_t*>(&option.field)) {
    for (const auto& [word, meaning] : option.words) {
      if (value != word) continue;
      **number = meaning;
      return true;
    }
    if (option.accepts_flag && value.is_boolean()) {
      **number = value.get<bool>() ? 1 : 0;
      return true;
    }
    if (!value.is_number()) return false;
    // 1e3 and 32.0 are integers to people.
    const double exact = value.get<double>();
    for (const auto& [written, meaning] : option.other_numbers) {
      if (exact != static_cast<double>(written)) continue;
      **number = meaning;
      return true;
    }
    if (exact != std::floor(exact) || std::abs(exact) > kLargestInteger || !in_range(option, exact)) return false;
    **number = value.is_number_integer() ? value.get<int64_t>() : static_cast<int64_t>(exact);
    return true;
  }
  if (auto* const* number = std::get_if<double*>(&option.field)) {
    if (!value.is_number() || !in_range(option, value.get<double>())) return false;
    **number = value.get<double>();
    return true;
  }
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&option.field)) {
    std::vector<std::string> items;
    if (value.is_string()) {
      if (!value.get<std::string>().empty()) items.push_back(value.get<std::string>());
    } else {
      if (!value.is_array()) return false;
      for (const Json& item : value) {
        if (!item.is_string() || item.get<std::string>().empty()) return false;
        items.push_back(item.get<std::string>());
      }
    }
    **list = std::move(items);
    return true;
  }
  if (auto* const* list = std::get_if<std::vector<int64_t>*>(&option.field)) {
    std::vector<int64_t> numbers;
    for (const Json& item : value.is_array() ? value : Json::array({value})) {
      if (!item.is_number()) return false;
      const double exact = item.get<double>();
      if (exact != std::floor(exact) || std::abs(exact) > kLargestInteger || !in_range(option, exact)) return false;
      numbers.push_back(static_cast<int64_t>(exact));
    }
    **list = std::move(numbers);
    return true;
  }
  if (auto* const* named = std::get_if<NamedNumbers*>(&option.field)) {
    NamedNumbers read;
    if (value.is_string()) {
      if (!choose(option, value.get<std::string>(), source, notes, read.word)) return false;
    } else {
      if (!value.is_object() || value.empty()) return false;
      for (const auto& [name, number] : value.items()) {
        if (!number.is_number() || !in_range(option, number.get<double>())) return false;
        read.numbers.emplace_back(name, number.get<double>());
      }
    }
    **named = std::move(read);
    return true;
  }
  const bool is_word = value.is_boolean() && option.has_word_for_flag();
  if (!value.is_string() && !is_word) return false;
  const std::string word = is_word ? value.dump() : value.get<std::string>();
  return choose(option, word, source, notes, *std::get<std::string*>(option.field));
}

}  // namespace brisk
