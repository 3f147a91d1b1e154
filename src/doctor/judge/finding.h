// A finding: something that makes a training slower than it need be, or wrong, with the numbers that show it and what to
// do about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brisk {

// What a fix does to the result of the training.
enum class Sameness : uint8_t {
  same_bits,      // every number is the same
  same_maths,     // the same maths; sums are rounded in another order, or in another number format
  changes_maths,  // another training: better, worse or as good
};
// "same bits", "same maths within rounding", "changes the maths"
std::string_view sameness_text(Sameness sameness);
// "same bits", "same maths", "changes maths": in JSON
std::string_view sameness_name(Sameness sameness);

// One key of the job with its new value. A fix that changes the batch may say how the learning rate follows.
struct Fix {
  std::string key;    // "training.padding"
  std::string value;  // JSON: "\"none\"", "8"
  std::string
      advice;  // in words, for what no key does: "free memory, or use a machine with more"; may stand without key
  std::vector<std::pair<std::string, std::string>> also = {};  // keys that must follow it by a rule (learning rates)
  std::string rule = {};                                       // that rule, in a sentence
  int64_t processes = 0;  // to start the job with so many, which advice says how; 0: nothing of the kind
  bool is_setting() const { return !key.empty(); }
};

struct Evidence {
  std::string name;   // "rows that are padding"
  std::string value;  // "62 %"
  std::string note;   // may be empty
};

struct Finding {
  std::string id;                  // "padding"
  std::vector<Evidence> evidence;  // numbers, the strongest first
  std::string cause;               // one sentence: "62 % of the computed rows are padding up to max_length 512."
  std::optional<Fix> fix;          // none: there is nothing brisk could set
  double predicted_gain = 1;       // of the time of an epoch, by Amdahl on measured shares: 1.42 is 42 % faster
  Sameness sameness = Sameness::same_maths;
  std::string change;  // of changes_maths: what is another training then, in words
  bool is_quality =
      false;  // about the result, and not the speed (plateau, overfitting, learning_rate): never ranked first
  bool shown_without_gain =
      false;  // worth knowing though none can be predicted: an idle GPU, memory that is nearly full
};

}  // namespace brisk
