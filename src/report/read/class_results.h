// What the best evaluation of a classifier said class by class: read back from a run's evaluation.json, and as a page
// shows it.
//
//   const ClassResults results = read_class_results("runs/reviews/evaluation.json", notes);
//   body += class_sections_html(results);   // two sections; nothing where there are no results
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/page/html.h"
#include "report/read/unknown.h"

namespace brisk {

struct ClassResults {
  struct Score {
    double precision = kUnknown, recall = kUnknown, f1 = kUnknown;
  };
  struct Class {
    std::string label;
    double examples = 0, predictions = 0;
    Score score;
  };
  struct Confusion {  // so many examples of one class were taken for another, or for itself
    size_t label, predicted;
    double examples;
  };
  double examples = 0, accuracy = kUnknown;
  Score macro, weighted;  // the mean of the classes; each as often as it occurs
  std::vector<Class> classes;
  std::vector<Confusion> confusions;

  bool empty() const { return classes.empty(); }
};

// Empty where there is no such file; where it cannot be understood, a note says so.
ClassResults read_class_results(const std::string& path, std::vector<std::string>& notes);

Html class_sections_html(const ClassResults& results);

}  // namespace brisk
