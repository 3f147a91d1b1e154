// Encoders: BERT, DistilBERT and RoBERTa by options (models/encoder.h), with the head of their task; Hugging Face
// folders.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "hub/huggingface/encoder.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/model_shape.h"
#include "job/job_conditions.h"
#include "job/job_task.h"
#include "models/encoder.h"

namespace brisk {

namespace {

class EncoderArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    EncoderConfig config = plain_config(job);
    config.frozen_embeddings = job.training.freeze >= 0;
    config.frozen_layers = std::max<int64_t>(0, job.training.freeze);
    config.frozen_dropout = job.training.frozen_dropout;
    return config;
  }

  ModelConfig inference_config(const Job& job, const std::function<bool(std::string_view)>& is_saved) const override {
    EncoderConfig config = plain_config(job);
    if (has_no_head(job)) {
      config.head = EncoderConfig::Head::none;
      config.lone_pooler = is_saved("pooler.weight");
    }
    return config;
  }

  std::string describe(const Job& job) const override {
    const EncoderConfig config = plain_config(job);
    return fmt::format(
        "{}, {}, dropout {:g}, of attention {:g}{}", job.model.type, job.model.activation, config.dropout,
        config.attention_dropout,
        config.is_classifier() ? fmt::format(", of the classifier {:g}", config.classifier_dropout) : "");
  }

  bool starts_from_part() const override { return true; }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (!is_huggingface_encoder(path)) return std::nullopt;
    const auto folder = std::make_shared<HuggingFaceEncoder>(path);
    const HuggingFaceEncoderConfig& config = folder->config();
    ModelOptions model = config.model;
    const HuggingFaceEncoderConfig::Head head = folder->head();
    const bool classifier = head == HuggingFaceEncoderConfig::Head::classifier;
    const bool masked_words = head == HuggingFaceEncoderConfig::Head::masked_words;
    if (!classifier && !masked_words) model.num_labels = 0;  // to become a classifier, most likely: has_no_head()
    ModelSource source = foreign_source("Hugging Face folder", path, model);
    source.job.task = masked_words ? "mlm" : "classify";
    source.job.training.optimizer = "adamw";
    source.job.data.text_field.clear();  // found in the table that it is asked about
    if (classifier) source.labels = config.labels;
    source.tokenizer = [path] { return load_tokenizer(path); };
    source.check = [folder](const ParameterStore& store) { folder->check(store); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) {
      check_problem(folder->config(), folder->path());
      const EncoderLoading loading = folder->load_into(store, {}, nonfinite);
      if (loading.missing.empty() && loading.replaced.empty()) return;
      user_error(
          "{}: it has no {}, which its task needs; fine-tune it first ({{\"model\": {{\"from\": {}}}}} in a job)",
          folder->path(), loading.missing.empty() ? loading.replaced.front() : loading.missing.front(),
          fmt::format("\"{}\"", folder->path()));
    };
    source.start = [folder](ParameterStore& store, const std::vector<int64_t>& layers, NonFinite nonfinite) {
      return folder->load_into(store, layers, nonfinite).lines();
    };
    // The pooler is the only parameter that not every encoder has.
    source.config = inference_config(source.job, [&](std::string_view /*pooler*/) { return folder->has_pooler(); });
    return source;
  }

  void check_huggingface(const ModelOptions& /*model*/) const override {}

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    using Head = HuggingFaceEncoderConfig::Head;
    const bool classifier = traits_of_task(model.job.task).has_labels;
    write_huggingface_encoder(folder,
                              {.model = model.job.model,
                               .head = classifier ? Head::classifier : Head::masked_words,
                               .labels = model.labels.names()},
                              model.store, *model.tokenizer, type, model.job.training.max_length);
    return has_no_head(model.job) ? "AutoModel"
           : classifier           ? "AutoModelForSequenceClassification"
                                  : "AutoModelForMaskedLM";
  }

 private:
  // With the head of its task and nothing frozen.
  static EncoderConfig plain_config(const Job& job) {
    ModelOptions model = job.model;
    resolve_encoder(model);
    const bool roberta = model.type == "roberta", distilbert = model.type == "distilbert";
    auto config = config_with_shape<EncoderConfig>(model);
    config.position_offset = roberta ? kRobertaPositionOffset : 0;
    config.types = model.token_types;
    config.attention_dropout = model.attention_dropout;
    config.classifier_dropout = model.classifier_dropout;
    using Head = EncoderConfig::Head;
    config.head = traits_of_task(job.task).masks_tokens ? Head::mlm
                  : roberta                             ? Head::roberta
                  : distilbert                          ? Head::relu
                                                        : Head::pooler_tanh;
    config.num_labels = std::max<int64_t>(1, model.num_labels);
    config.prune_last_layer = job.training.prune_last_layer;
    return config;
  }
};

}  // namespace

const Architecture& encoder_architecture() {
  static const EncoderArchitecture architecture;
  return architecture;
}

}  // namespace brisk
