// What a model is judged by: a list of named values, each of which says which way is better and how it is shown. The
// evaluation makes the list; metrics.jsonl, TensorBoard, the choice of the best model, tables and pages loop over it
// and know none of the names, so that a metric is added where it is computed and nowhere else.
//
//   Metrics metrics = {standard_metric("loss", 3.21), {.name = "bleu", .value = 27.5, .higher_is_better = true}};
//   metrics.value("bleu");                      // 27.5; NaN where there is no such metric
//   if (better(metrics, best, "bleu")) ...      // the loss decides between equals
//   metrics_text(metrics, "bleu");              // "bleu 27.5000, loss 3.2100"
#pragma once

#include <brisk/error.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brisk {

enum class MetricFormat {
  number,       // 3.2100
  wide_number,  // of any magnitude: 24.78, 1.23e+45
  percent       // a share, of which 0.912 is 91.20 %
};

struct BRISK_API Metric {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string name;      // as best_by has it; `validation_<name>` in metrics.jsonl
  double value = kNone;  // none: not computed, or the metric as such
  bool higher_is_better = false;
  MetricFormat format = MetricFormat::number;
  std::string label = {};            // for people: "macro F1"; empty: the name
  std::string short_name = {};       // as best_by has it, too, and TensorBoard: "f1"; empty: the name
  std::string description = {};      // what is measured, for a page: "Percent predicted correctly"
  bool any_tokenizer = false;        // comparable between models that cut a text into other tokens
  bool secondary = false;            // in files and TensorBoard, but in no table unless it is what best_by names
  double low = kNone, high = kNone;  // the 95 % confidence interval, where there is one

  const std::string& title() const { return label.empty() ? name : label; }
  const std::string& tag() const { return short_name.empty() ? name : short_name; }
  bool has_interval() const;
  std::string text() const;           // "91.20 %"
  std::string interval_text() const;  // "88.93 to 93.04 %"
};

class BRISK_API Metrics {
 public:
  Metrics() = default;
  Metrics(std::initializer_list<Metric> list) : list_(list) {}

  void add(Metric metric) { list_.push_back(std::move(metric)); }

  // By name or short name, also as others write them ("eval_f1", "f1_macro", "Macro-F1"); nullptr: there is none.
  const Metric* find(std::string_view name) const;
  double value(std::string_view name) const;  // NaN: there is none

  // Those that tables and pages show: `first`, then the others that are not secondary, in their order.
  std::vector<Metric> shown(std::string_view first) const;
  // "accuracy, macro_f1 (or f1), loss"
  std::string names() const;

  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  bool empty() const { return list_.empty(); }

 private:
  std::vector<Metric> list_;
};

// A metric that brisk has always had (loss, perplexity, bits_per_byte, accuracy, macro_ and weighted_ f1, precision and
// recall), also for reading a run that does not say what its metrics are. Of any other name: a plain number,
// better when higher unless the name ends in "loss", as Hugging Face's Trainer has it.
BRISK_API Metric standard_metric(std::string_view name, double value = Metric::kNone);

// Whether `a` is better than `b` by the metric `by`: `b` may lack it, and then every value is better. The loss decides
// between equals, and where its loss is not finite a model is never better.
BRISK_API bool better(const Metrics& a, const Metrics& b, std::string_view by);

// "accuracy 91.20 % (95 %: 88.93 to 93.04 %), macro F1 90.81 %, loss 0.2310": those that are shown.
BRISK_API std::string metrics_text(const Metrics& metrics, std::string_view first);

// An evaluation during a training.
struct EvaluationMetrics {
  int64_t step = 0;
  int64_t epoch = 0;
  Metrics metrics = {};  // as validation_<name>, and validation_<name>_interval where there is one
  double seconds = 0;
};

}  // namespace brisk
