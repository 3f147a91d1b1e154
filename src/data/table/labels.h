// The classes of a data set: words or numbers in a table, 0 to C - 1 in a model.
//
//   LabelSet labels(std::vector<std::string>{"pos", "neg", "pos"});   // neg is 0, pos is 1
//   labels.find("pos");                                               // 1;  -1 for one it does not have
//   labels.name(0);                                                   // "neg"
//
// Numbers are in their order ("10" after "9") and the same however they are written ("1", "1.0", "01"); words are in
// the order of their bytes. So the classes do not depend on the order of the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace brisk {

class LabelSet {
 public:
  LabelSet() = default;
  explicit LabelSet(std::vector<std::string> labels);        // in any order, any number of times
  static LabelSet in_order(std::vector<std::string> names);  // as a model has them: name i is class i

  int64_t count() const { return std::ssize(names_); }
  const std::string& name(int64_t label) const { return names_[static_cast<size_t>(label)]; }
  const std::vector<std::string>& names() const { return names_; }
  int32_t find(std::string_view label) const;  // -1: not one of them

  // "neg, pos", or the first of them and how many there are.
  std::string text(int64_t most = 20) const;

  // Labels that differ in nothing but capitals and spaces, as "Pos" and "pos": rarely what was meant. Empty: none.
  std::string near_copies() const;

  bool operator==(const LabelSet& other) const { return names_ == other.names_; }

 private:
  void index();

  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_of_;
  bool numbers_ = false;
};

// A cell as a label: without the spaces around it.
std::string_view trimmed_label(std::string_view cell);

// The value of a label that is a number.
std::optional<double> number_of_label(std::string_view label);

// A weight for each class so that all of them count the same in the loss, 1 on average over the examples:
// examples / (classes x examples of the class), as scikit-learn's "balanced". 0 for a class without examples.
std::vector<float> balanced_class_weights(std::span<const int64_t> examples_of_class);

}  // namespace brisk
