// Options declared once. A declaration binds a name to a field of a struct, and says the rest: other spellings, range,
// choices, help. The field's value at the time of the declaration is the default. From the declarations come parsing,
// checks, error messages, the JSON schema and the documentation table.
//
//   struct Cake { int64_t eggs = 3; std::string icing = "none"; } cake;
//   std::vector<Option> options;
//   options.push_back(Option("cake.eggs", cake.eggs, "eggs in the dough").at_least(1).at_most(12).also({"num_eggs"}));
//   options.push_back(Option("cake.icing", cake.icing, "what covers it").one_of({"none", "sugar"}));
//   ReadResult result = read_options(options, R"({"cake": {"num_eggs": 4}})", "cake.json", {"cake.icing=sugar"});
//   // cake.eggs is 4, cake.icing "sugar"; result.notes: "cake.json: cake.num_eggs is cake.eggs here"
//
// A key is "section.name" or, at the top of the file, "name". An option may also be a list of items with options of
// their own (OptionItems): "layers": ["chocolate", {"flavour": "cream", "height": 2}].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace brisk {

class Option;

// A list whose items are JSON objects with options of their own; a plain string stands for an item with only the first
// of them given.
class OptionItems {
 public:
  virtual ~OptionItems() = default;
  virtual void clear() = 0;
  virtual std::vector<Option> append() = 0;              // a new item at the end: its options
  virtual std::vector<std::vector<Option>> items() = 0;  // those of each item there is, with their defaults
  virtual std::vector<Option> example() = 0;             // those of an item with defaults alone, to describe
};

class Option {
 public:
  using Field =
      std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*, std::shared_ptr<OptionItems>>;

  template <typename T>
  Option(std::string path, T& field, std::string help) : path(std::move(path)), field(&field), help(std::move(help)) {
    default_text = value_text();
  }
  Option(std::string path, std::shared_ptr<OptionItems> items, std::string help);

  // Declaring, each returns the option so that calls chain.
  Option& at_least(double bound);
  Option& above(double bound);
  Option& at_most(double bound);
  Option& below(double bound);
  Option& one_of(std::vector<std::string> words);
  // Another word for a choice: same_as("gelu_new", "gelu").
  Option& same_as(std::string word, std::string choice);
  // Other spellings of the key, in the same section; one with a dot is a full path, ".name" the top of the file.
  Option& also(std::vector<std::string> names);
  // A key whose value is true or false, and which sets this option to `value` when true: "bf16": true.
  Option& flag(std::string name, std::string value);
  // `value` (and "auto" in a file) means that brisk chooses, by this rule.
  Option& automatic(double value, std::string rule);
  // The empty string means that brisk chooses, by this rule.
  Option& automatic(std::string rule);
  Option& in(std::string unit_name);
  // true is 1 and false 0, of an integer option.
  Option& or_flag();
  // A word for one of the values of an integer option: or_word("none", -1).
  Option& or_word(std::string word, int64_t value);

  std::string section() const;  // "training"; empty at the top
  std::string name() const;     // "batch_size"
  std::string alias_path(const std::string& alias) const;

  // Is the field at the value that means "brisk chooses"?
  bool is_automatic() const;
  std::string value_text() const;  // as written in JSON, "auto" where is_automatic()
  std::string expected() const;    // "an integer from 1 to 12"
  std::string range() const;       // "1 to 12", "none, sugar"; empty where anything goes

  std::string path;
  Field field;
  std::string help;
  std::string default_text;
  std::optional<double> least, most;
  bool least_open = false, most_open = false;
  std::vector<std::string> choices;
  std::vector<std::pair<std::string, std::string>> choice_aliases;
  std::vector<std::string> aliases;
  std::vector<std::pair<std::string, std::string>> flags;
  std::optional<double> automatic_value;
  std::string automatic_rule;
  std::string unit;
  bool accepts_flag = false;
  std::vector<std::pair<std::string, int64_t>> words;
};

struct ReadResult {
  std::vector<std::string> notes;  // a line for each other spelling understood
  std::set<std::string> given;     // canonical paths that the text or the overrides set
};

// Sets the fields from JSON text (with // and /* */ comments), then from `overrides`, each "path=value" where the value
// is JSON or, failing that, a string. All problems are reported in one UserError, a line each.
ReadResult read_options(const std::vector<Option>& options, const std::string& json_text,
                        const std::string& source_name, const std::vector<std::string>& overrides = {});

// Every option with its value, sections as objects.
std::string options_to_json_text(const std::vector<Option>& options);

// JSON schema, draft 2020-12. `sections` gives each section's description; "" is the whole.
std::string options_schema(const std::vector<Option>& options, const std::string& title,
                           const std::vector<std::pair<std::string, std::string>>& sections);

// A table for each section, in the order of `sections`.
std::string options_markdown(const std::vector<Option>& options,
                             const std::vector<std::pair<std::string, std::string>>& sections);

// The canonical path of the option nearest to an unknown key, other spellings and other sections considered; or empty.
std::string nearest_option(const std::vector<Option>& options, const std::string& path);

}  // namespace brisk
