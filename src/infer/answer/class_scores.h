// How well a classifier names classes, from counts alone: memory grows with the classes, never with the examples.
//
//   ClassScores scores(labels.count());
//   scores.add(label, predicted);                 // each example
//   scores.accuracy();                            // 0.912
//   const auto [low, high] = scores.accuracy_interval();
//   say("{}", scores_text(scores, labels.names()));
//
// Precision: the share of the predictions of a class that are right. Recall: the share of the examples of a class that
// were found. F1: their harmonic mean. Without predictions, or examples, of a class they are 0. As scikit-learn has
// them, the mean over classes (macro) is over those that occur among the labels or the predictions; the weighted one
// counts each as often as it occurs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/metrics.h"

namespace brisk {

class ClassScores {
 public:
  explicit ClassScores(int64_t classes = 0);

  void add(int32_t label, int32_t predicted, int64_t examples = 1);

  int64_t classes() const { return std::ssize(examples_); }
  int64_t count() const { return count_; }
  int64_t correct() const { return correct_; }
  double accuracy() const;

  // Within which the accuracy on any number of such examples lies, 95 times in 100 (Wilson): that it is never below 0,
  // above 1, or of no width makes it honest for few examples, too.
  struct Interval {
    double low = 0, high = 1;
  };
  Interval accuracy_interval() const;

  struct Score {
    int64_t examples = 0, predictions = 0;
    double precision = 0, recall = 0, f1 = 0;
  };
  Score of_class(int64_t label) const;
  Score macro() const;
  Score weighted() const;

  int64_t confused(int64_t label, int64_t predicted) const;  // examples of `label` that were called `predicted`
  struct Confusion {
    int32_t label, predicted;
    int64_t examples;
  };
  std::vector<Confusion> confusions() const;  // what happened at all, correct ones included, in the order of the labels

 private:
  std::vector<int64_t> examples_, predictions_, hits_;  // of each class
  std::unordered_map<uint64_t, int64_t> confused_;      // by label << 32 | predicted
  int64_t count_ = 0, correct_ = 0;
};

// What a classifier is judged by: the loss, which is not in the counts, accuracy with its interval, and F1, precision
// and recall as means of the classes.
Metrics class_metrics(const ClassScores& scores = ClassScores(), double loss = Metric::kNone);

// Tables for people: each class (the most frequent of many), and what was taken for what.
std::string scores_text(const ClassScores& scores, const std::vector<std::string>& names);

// A JSON object: accuracy, accuracy_interval, macro_f1, weighted_f1, macro_ and weighted_precision and _recall,
// examples, classes (a list), and confusion, rows of labels by predictions (of more than 100 classes: a list of those
// that occur).
std::string scores_json(const ClassScores& scores, const std::vector<std::string>& names);

}  // namespace brisk
