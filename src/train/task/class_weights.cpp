#include "train/task/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text/spelling.h"
#include "infer/answer/class_scores.h"

namespace brisk {

namespace {

// 1 where the job names no other.
std::vector<float> named_class_weights(const NamedNumbers& named, const LabelSet& labels) {
  std::vector<float> weights(static_cast<size_t>(labels.count()), 1.0f);
  for (const auto& [name, weight] : named.numbers) {
    const int32_t label = labels.find(name);
    if (label < 0) {
      const std::string nearest = nearest_word(name, labels.names());
      user_error("training.class_weights: there is no class \"{}\"; the classes are {}{}", name, labels.text(),
                 nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
    }
    weights[static_cast<size_t>(label)] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace

void weigh_classes(const Job& job, TableData& prepared) {
  if (const NamedNumbers& named = job.training.class_weights; named.word != "none") {
    const std::vector<float> weights = named.word.empty() ? named_class_weights(named, prepared.labels)
                                                          : balanced_class_weights(prepared.train.class_counts());
    prepared.train.set_class_weights(weights);
    prepared.notes.push_back(fmt::format(
        "class weights: {}, {:.3g} to {:.3g}", named.word.empty() ? "as given" : named.word,
        *std::min_element(weights.begin(), weights.end()), *std::max_element(weights.begin(), weights.end())));
  }
}

std::string describe_classes(const LabelSet& labels, const std::string& best_by) {
  return fmt::format("{} classes: {}{}", labels.count(), labels.text(),
                     best_by.empty() ? ""
                                     : fmt::format("; the best model is chosen by validation {}",
                                                   class_metrics().find(best_by)->title()));
}

}  // namespace brisk
