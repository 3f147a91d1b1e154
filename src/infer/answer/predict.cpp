#include "infer/answer/predict.h"

#include <algorithm>

#include "base/error.h"
#include "base/runtime.h"
#include "infer/forward/batch_layout.h"
#include "infer/open/model_source.h"
#include "job/job_conditions.h"

namespace brisk {

namespace {

// Texts in memory as sequences without labels.
class TextList final : public Sequences {
 public:
  TextList(const std::vector<TextOrPair>& texts, const Tokenizer& tokenizer, const TextFrame& frame, int64_t max_length)
      : frame_(frame), max_length_(max_length) {
    for (const TextOrPair& text : texts) {
      Tokens& tokens = tokens_.emplace_back();
      tokenizer.encode(text.text, tokens.first);
      if (frame.pairs()) tokenizer.encode(text.pair, tokens.second);
      totals_.add(rows_of(tokens));
      cut_ += frame.rows({std::ssize(tokens.first), std::ssize(tokens.second)}, INT32_MAX) > max_length;
    }
  }

  int64_t cut() const { return cut_; }  // texts that are longer than max_length

  int64_t count() const override { return std::ssize(tokens_); }
  int64_t rows(int64_t index, int /*set*/ = 0) const override { return rows_of(tokens_[static_cast<size_t>(index)]); }
  LengthTotals totals(int /*set*/ = 0) const override { return totals_; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const Tokens& tokens = tokens_[static_cast<size_t>(index)];
    frame_.append({tokens.first, tokens.second}, max_length_, sequence, batch);
    append_picked_first(batch, -1);
  }

 private:
  struct Tokens {
    std::vector<TokenId> first, second;
  };
  int64_t rows_of(const Tokens& tokens) const {
    return frame_.rows({std::ssize(tokens.first), std::ssize(tokens.second)}, max_length_);
  }

  const TextFrame& frame_;
  int64_t max_length_, cut_ = 0;
  LengthTotals totals_;
  std::vector<Tokens> tokens_;
};

}  // namespace

void require_classifier(const TrainedModel& model) {
  if (model.model->classes() > 0 && model.labels.count() == model.model->classes()) return;
  if (has_no_head(model.job)) {
    user_error(
        "{0}: an encoder without a head, so it cannot predict yet: train a classifier from it, {{\"task\": "
        "\"classify\", \"model\": {{\"from\": \"{1}\"}}}} in a job",
        model.source, model.path);
  }
  user_error("{}: {}, which names no classes; train one with task classify", model.source,
             traits_of_task(model.job.task).model);
}

Predictor::Predictor(const TrainedModel& model, bool pairs, int64_t max_length)
    : model_(model), frame_(*model.tokenizer, pairs) {
  require_classifier(model);
  const int64_t longest = model.job.model.context;
  max_length_ = std::min(longest, max_length > 0 ? max_length : model.job.training.max_length);
  if (max_length_ < frame_.specials() + (pairs ? 2 : 1)) {
    user_error("{} {}: {} special tokens are added to each text; use {} or more", option_name("max_length"),
               max_length_, frame_.specials(), frame_.specials() + 2);
  }
  const BatchLayout layout = first_rows_layout(1);
  const RowCapacity capacity =
      layout.capacity(std::max(max_length_, usual_micro_batch_tokens(&model.store.device()) / 2), max_length_);
  predictor_ =
      std::make_unique<ClassPredictor>(*model.model, model.store, capacity, layout, backend_of(model.store.device()));
}

void Predictor::predict(const std::vector<TextOrPair>& texts, const Answer& answer) {
  const TextList list(texts, *model_.tokenizer, frame_, max_length_);
  cut_ += list.cut();
  tokens_ += predictor_->run(list, ledger_, [&](const ClassPredictor::Row& row) {
    answer(likeliest_class(row.logits), class_probabilities(row.logits));
  });
}

}  // namespace brisk
