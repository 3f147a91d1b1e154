#include "train/task/text_evaluation.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "comm/communicator.h"

namespace brisk {

namespace {

void add_those_of_other_ranks(TextScores& scores, ProcessGroup* processes) {
  if (processes == nullptr || processes->communicator() == nullptr) return;
  const std::vector<int64_t> own = scores.statistics();
  const std::string bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(int64_t));
  const std::vector<std::string> all = processes->communicator()->gather(bytes);
  std::vector<int64_t> numbers(own.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (static_cast<int>(rank) == processes->rank()) continue;
    BRISK_CHECK(all[rank].size() == bytes.size(), "statistics of other scores");
    std::memcpy(numbers.data(), all[rank].data(), bytes.size());
    scores.add_statistics(numbers);
  }
}

}  // namespace

TextEvaluation::TextEvaluation(const Job& job, ProcessGroup* processes) : processes_(processes) {
  const int64_t parts = job.training.logical_ranks;
  if (processes != nullptr) parts_ = parts > 0 ? parts : processes->size();
}

void TextEvaluation::add_scores(int64_t count, const TextScoreOptions& options, const Write& write,
                                Metrics& metrics) const {
  if (count == 0) return;
  const int64_t own = parts_ / (processes_ != nullptr ? processes_->size() : 1);
  const int64_t first = own * (processes_ != nullptr ? processes_->rank() : 0);
  TextScores scores(options);
  bool cancelled = false;
  try {
    for (int64_t part = first; part < first + own; ++part) {
      write(part * count / parts_, (part + 1) * count / parts_,
            [&](std::string_view answer, std::string_view reference) { scores.add(answer, reference); });
    }
  } catch (const Cancelled&) {
    cancelled = true;
  }
  // One rank may be done where another was interrupted: all leave it, or none does.
  if (processes_ != nullptr ? processes_->sum(cancelled ? 1.0 : 0.0) > 0 : cancelled) throw Cancelled();
  add_those_of_other_ranks(scores, processes_);
  for (const TextScoreKind kind : options.kinds) metrics.add(text_score_metric(kind, scores.value(kind)));
}

Metric text_score_metric(TextScoreKind kind, double value) {
  const TextScoreInfo& info = info_of(kind);
  const bool of_pages = kind == TextScoreKind::kSteds || kind == TextScoreKind::kBleuText;  // lines have no headings
  return {.name = info.name,
          .value = value,
          .higher_is_better = info.higher_is_better,
          .format = info.is_share ? MetricFormat::percent : MetricFormat::wide_number,
          .label = kind == TextScoreKind::kCer ? "CER" : info.label,
          .description = info.description,
          .any_tokenizer = true,
          .secondary = of_pages};
}

void check_best_by(const Job& job, std::span<const TextScoreKind> kinds) {
  for (const TextScoreKind kind : kinds) {
    if (job.training.best_by != info_of(kind).name || job.training.eval_translations > 0) continue;
    user_error("training.best_by = {}, but training.eval_translations = 0: no text is written to measure it",
               job.training.best_by);
  }
}

}  // namespace brisk
