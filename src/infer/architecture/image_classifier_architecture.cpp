// Classifiers of images: ViT, BEiT, DiT and Swin (models/image_classifier.h); Hugging Face folders.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "hub/huggingface/image_classifier.h"
#include "image/preprocessor_config.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/image_encoder_options.h"
#include "job/job_task.h"
#include "models/image_classifier.h"

namespace brisk {

namespace {

class ImageClassifierArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    ImageClassifierConfig config = plain_config(job.model);
    config.num_labels = std::max<int64_t>(1, config.num_labels);
    config.encoder.frozen = job.training.freeze;
    return config;
  }
  ModelConfig inference_config(const Job& job,
                               const std::function<bool(std::string_view)>& /*is_saved*/) const override {
    return plain_config(job.model);
  }
  ImageLayout image_layout(const ModelOptions& model) const override {
    const ImageEncoderConfig encoder = plain_config(model).encoder;
    return {.images = {encoder.input()}, .fixed_rows = encoder.fixed_rows()};
  }

  std::string describe(const Job& job) const override {
    const ImageClassifierConfig config = plain_config(job.model);
    const ImageInput& image = config.encoder.image;
    return fmt::format("{}, images of {} x {} in patches of {} x {}, {}, dropout {:g}, of attention {:g}",
                       job.model.image_encoder, image.height, image.width, image.patch, image.patch,
                       config.mean_pooling ? "the mean of the patches" : "the class token", config.encoder.dropout,
                       config.encoder.attention_dropout);
  }

  bool starts_from_part() const override { return true; }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (!is_huggingface_image_encoder(path)) return std::nullopt;
    const auto folder = std::make_shared<HuggingFaceImageClassifier>(path);
    ModelOptions model = folder->model();
    if (!folder->has_classifier()) model.num_labels = 0;
    ModelSource source = foreign_source("Hugging Face folder", path, model);
    source.job.task = "classify";
    source.job.training.optimizer = "adamw";
    source.job.data.text_field.clear();
    if (folder->has_classifier()) source.labels = folder->labels();
    source.tokenizer = [] { return std::unique_ptr<Tokenizer>(); };
    source.check = [folder](const ParameterStore& store) { folder->check(store); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) {
      const EncoderLoading loading = folder->load_into(store, {}, nonfinite);
      if (loading.missing.empty() && loading.replaced.empty()) return;
      // A mean's norm that an encoder was saved without is of no use to it.
      if (store.find("classifier.weight") == nullptr) return;
      user_error(
          "{}: it has no {}, which a classifier needs; fine-tune it first ({{\"model\": {{\"from\": \"{}\"}}}} in a job)",
          folder->path(), loading.missing.empty() ? loading.replaced.front() : loading.missing.front(), folder->path());
    };
    source.start = [folder](ParameterStore& store, const std::vector<int64_t>& layers, NonFinite nonfinite) {
      return folder->load_into(store, layers, nonfinite).lines();
    };
    source.config = inference_config(source.job, nullptr);
    return source;
  }

  void check_huggingface(const ModelOptions& model) const override {
    check_huggingface_image_classifier(resolved(model));
  }

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    ModelOptions options = resolved(model.job.model);
    const ImageInput image = plain_config(options).encoder.image;
    options.image_size = {image.height, image.width};  // a job may leave it to its processor
    options.image_processor = preprocessor_config_text(image.processing);
    write_huggingface_image_classifier(folder, options, model.labels.names(), model.store, type);
    return model.config.get_if<ImageClassifierConfig>()->num_labels > 0 ? "AutoModelForImageClassification"
                                                                        : "AutoModel";
  }

 private:
  static ModelOptions resolved(ModelOptions model) {
    resolve_encoder(model);
    resolve_image_encoder(model);
    return model;
  }
  // With nothing frozen.
  static ImageClassifierConfig plain_config(const ModelOptions& options) {
    const ModelOptions model = resolved(options);
    return {.encoder = image_encoder_config(model),
            .mean_pooling = model.pooling == "mean",
            .num_labels = model.num_labels};
  }
};

}  // namespace

const Architecture& image_classifier_architecture() {
  static const ImageClassifierArchitecture architecture;
  return architecture;
}

}  // namespace brisk
