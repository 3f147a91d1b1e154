// Options declared once. A declaration binds a name to a field of a struct, and says the rest: other spellings, range,
// choices, help, where the option applies, whether it may change when a run is resumed, its value in a smoke test. The
// field's value at the time of the declaration is the default. From the declarations come parsing, checks, error
// messages, the JSON schema and the documentation table.
//
//   struct Cake { int64_t eggs = 3; bool vegan = false; std::string icing = "none"; } cake;
//   std::vector<Option> options;
//   options.emplace_back("cake.vegan", cake.vegan, "bake without eggs and milk", OnResume::fixed)
//       .everywhere().same_in_smoke_test();
//   options.emplace_back("cake.eggs", cake.eggs, "eggs in the dough", OnResume::fixed)
//       .at_least(1).at_most(12).also({"num_eggs"})
//       .only_with({"eggs", [&cake] { return !cake.vegan; }})
//       .smoke_test_at_most(1);
//   options.emplace_back("cake.icing", cake.icing, "what covers it", OnResume::may_change)
//       .one_of({"none", "sugar"}).everywhere().smoke_test_value("none");
//   ReadResult result = read_options(options, R"({"cake": {"num_eggs": 4}})", "cake.json", {"cake.icing=sugar"});
//   // cake.eggs is 4, cake.icing "sugar"; result.notes: "cake.json: cake.num_eggs is cake.eggs here"
//
// A key is "section.name" or, at the top of the file, "name". An option may also be a list of items with options of
// their own (OptionItems): "layers": ["chocolate", {"flavour": "cream", "height": 2}].
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "job/options/foreign_key.h"
#include "job/options/named_numbers.h"

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

// When an option has an effect, or another default; it looks at the fields as they stand when it is asked.
struct Condition {
  // "task mlm": follows "only with" in the documentation. One that begins with "if" or "without" follows "only".
  std::string where;
  std::function<bool()> holds;
  std::function<std::string()> otherwise = nullptr;  // follows "does not apply": "to task lm (it has no classes)";
                                                     // none: "without" and `where`
};

// Whether an option may differ when saved work is continued.
enum class OnResume : uint8_t { fixed, may_change };

// Who decides an option where the work begins from something that has its own value: that alone, so that another value
// is an error; that, unless less is asked for; what is asked for, if anything is; or what is asked for alone.
enum class WithSource : uint8_t { decides, limits, suggests, leaves };

class Option {
 public:
  using Field = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*, std::vector<int64_t>*,
                             NamedNumbers*, std::shared_ptr<OptionItems>>;
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

  template <typename T>
  Option(std::string path, T& field, std::string help, OnResume on_resume)
      : path(std::move(path)), field(&field), help(std::move(help)), on_resume(on_resume) {
    default_text = value_text();
  }
  Option(std::string path, std::shared_ptr<OptionItems> items, std::string help, OnResume on_resume);

  // Declaring, each returns the option so that calls chain.
  Option& at_least(double bound);
  Option& above(double bound);
  Option& at_most(double bound);
  Option& below(double bound);
  Option& one_of(std::vector<std::string> words);
  // Another word for a choice: same_as("gelu_new", "gelu"). Of the words "true" and "false", also without quotation marks.
  Option& same_as(std::string word, std::string choice);
  // Other spellings of the key, in the same section; one with a dot is a full path, ".name" the top of the file.
  Option& also(std::vector<std::string> names);
  // A word that is known from elsewhere and is no choice here: why, and what to take instead.
  Option& not_a_choice(std::vector<std::string> words, std::string answer);
  // An object with these keys, all of them, gives other options: object_of({{"source", "data.train"}, ...}) reads
  // "train": {"source": "a.en", ...}.
  Option& object_of(std::vector<std::pair<std::string, std::string>> keys_and_paths);
  // A key whose value is true or false, and which sets this option to `value` when true: "bf16": true. When false, it
  // is `otherwise` unless something else is given; without one it is not `value`, and else what it would be.
  Option& flag(std::string name, std::string value, std::string otherwise = "");
  // `value` (and "auto" in a file) means that brisk chooses, by this rule.
  Option& automatic(double value, std::string rule);
  // The empty string, or the empty list, means that brisk chooses, by this rule.
  Option& automatic(std::string rule);
  Option& in(std::string unit_name);
  // true is 1 and false 0, of an integer option.
  Option& or_flag();
  // A word for one of the values of an integer option: or_word("none", -1).
  Option& or_word(std::string word, int64_t value);
  // How others write one of the values of an integer option: read_as(-1, 0).
  Option& read_as(int64_t written, int64_t value);
  // What to write instead of a fraction, of an integer option; {} stands for the number that was found.
  Option& instead_of_fraction(std::string answer);

  // The option has an effect where all these conditions hold. Elsewhere a value of its own is an error (only_with), or
  // is ignored (used_with): the momentum of an optimizer that is not used.
  Option& only_with(Condition condition);
  Option& used_with(Condition condition);
  Option& everywhere();  // there are no such conditions
  // Where the condition holds, any other value than `allows` accepts is an error: "an encoder has layernorm".
  Option& must_with(Condition condition, std::function<bool()> allows, std::string expected);
  // Another default where the condition holds; of several the last. It may look at options declared before this one.
  Option& default_with(Condition condition, Value value);

  // Where nothing is given, what is found in the data fills it in.
  Option& decided_by_data();
  Option& with_source(WithSource rule);

  // Its value where a job is only tried out, small and short.
  Option& smoke_test_at_most(int64_t most);
  Option& smoke_test_value(Value value);
  Option& smoke_test_rule(std::function<void()> rule);
  Option& same_in_smoke_test();

  // The first condition that does not hold; of only_with alone where `required`. Null: all hold.
  const Condition* unmet_condition(bool required = false) const;
  bool has_effect() const { return unmet_condition() == nullptr; }
  void take(const Option& other) const;     // the value of the same option of another struct
  std::string meaning() const;              // the help, and where the option applies
  std::string other_defaults_text() const;  // "; 32 with optimizer adamw"; empty: none

  std::string section() const;  // "training"; empty at the top
  std::string name() const;     // "batch_size"
  std::string alias_path(const std::string& alias) const;

  // Is the field at the value that means "brisk chooses"?
  bool is_automatic() const;
  bool has_word_for_flag() const;  // its words are "true" and "false", too
  bool is_open() const;            // so, or an empty string
  std::string value_text() const;  // as written in JSON, "auto" where is_automatic()
  std::string expected() const;    // "an integer from 1 to 12"
  std::string range() const;       // "1 to 12", "none, sugar"; empty where anything goes

  std::string path;
  Field field;
  std::string help;
  OnResume on_resume;
  std::string default_text;
  std::optional<double> least, most;
  bool least_open = false, most_open = false;
  std::vector<std::string> choices;
  std::vector<std::pair<std::string, std::string>> choice_aliases;
  std::vector<std::string> aliases;
  std::vector<std::pair<std::vector<std::string>, std::string>> no_choices;
  struct Flag {
    std::string name, value, otherwise;
  };
  std::vector<Flag> flags;
  std::vector<std::pair<std::string, std::string>> object_keys;
  std::optional<double> automatic_value;
  std::string automatic_rule;
  std::string unit;
  bool accepts_flag = false;
  std::vector<std::pair<std::string, int64_t>> words;
  std::vector<std::pair<int64_t, int64_t>> other_numbers;
  std::string fraction_answer;

  struct Requirement {
    Condition condition;
    bool required;
  };
  std::vector<Requirement> requirements;
  bool applies_everywhere = false;
  struct Restriction {
    Condition condition;
    std::function<bool()> allows;
    std::string expected;
  };
  std::vector<Restriction> restrictions;
  struct OtherDefault {
    Condition condition;
    Value value;
  };
  std::vector<OtherDefault> other_defaults;
  bool is_decided_by_data = false;
  WithSource source_rule = WithSource::decides;
  bool smoke_test_said = false;
  std::function<void()> smoke_test;  // none: the value stays
};

struct ReadResult {
  std::vector<std::string> notes;    // what was read as something else, and what was ignored
  std::set<std::string> given;       // canonical paths that the text or the overrides set
  std::set<std::string> spelled;     // what else some of them were called
  std::set<std::string> overridden;  // those that the overrides set
};

// Sets the fields from JSON text (with // and /* */ comments), then from `overrides`, each "path=value" where the value
// is JSON or, failing that, a string. At the top of the text, and in an override, the section of an option may be left
// out where no other option has that name. All problems are reported in one UserError, a line each.
ReadResult read_options(const std::vector<Option>& options, const std::string& json_text,
                        const std::string& source_name, const std::vector<std::string>& overrides = {},
                        const std::vector<ForeignKey>& foreign_keys = {});

// A line for each option that is given and has no effect (used_with), and another value than its default; none where
// all options are given, as options_to_json_text() writes them.
std::vector<std::string> options_without_effect(const std::vector<Option>& options, const std::set<std::string>& given);

// What a job that is only tried out has in place of its values (smoke_test_at_most and the like).
void shrink_for_smoke_test(const std::vector<Option>& options);

// Gives the options that are not `given` their other defaults where a condition holds (default_with). Returns a line for
// each condition that changed something: "defaults with optimizer adamw: training.batch_size = 32, ...".
std::vector<std::string> apply_other_defaults(const std::vector<Option>& options, const std::set<std::string>& given);

// UserError where an option that does not apply (only_with) has another value than in `defaults`, the same options of a
// struct with defaults alone; or one that it must not have (must_with).
void check_options_apply(const std::vector<Option>& options, const std::vector<Option>& defaults);

// What was found in the data, by path, in the options that are decided by it.
using FoundValues = std::map<std::string, Option::Value>;
void take_found(const std::vector<Option>& options, const FoundValues& found);
// The same of `saved`, where an option is still open.
void recall_found(const std::vector<Option>& options, const std::vector<Option>& saved);

// The values that must not change on resume, by path; of a list of items ("data.train.0.weight") those that are given.
std::map<std::string, std::string> values_fixed_on_resume(const std::vector<Option>& options);

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
