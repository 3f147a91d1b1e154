// An image encoder and a decoder of text (models/vision_encoder_decoder.h); Hugging Face folders.
#include <fmt/format.h>

#include "hub/huggingface/vision_encoder_decoder.h"
#include "image/preprocessor_config.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/image_encoder_options.h"
#include "infer/architecture/text_decoder_options.h"
#include "job/job_task.h"
#include "models/vision_encoder_decoder.h"

namespace brisk {

namespace {

class VisionEncoderDecoderArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    VisionEncoderDecoderConfig config = plain_config(job.model);
    if (job.training.freeze_encoders) config.encoder.frozen = config.encoder.layers();
    return config;
  }
  ModelConfig cached_config(const Job& job) const override {
    ModelConfig config = training_config(job);
    config.get_if<VisionEncoderDecoderConfig>()->encoder.cached = true;
    return config;
  }
  ModelConfig inference_config(const Job& job,
                               const std::function<bool(std::string_view)>& /*is_saved*/) const override {
    return plain_config(job.model);
  }
  ImageLayout image_layout(const ModelOptions& model) const override { return plain_config(model).image_layout(); }

  std::vector<ModelPart> parts(const ModelOptions& model) const override {
    std::vector<ModelPart> parts;
    if (!model.image_encoder_from.empty()) {
      parts.push_back(image_encoder_part("model.image_encoder_from", model.image_encoder_from, "encoder."));
    }
    if (!model.decoder_from.empty()) parts.push_back(text_decoder_part("model.decoder_from", model.decoder_from));
    return parts;
  }

  std::string describe(const Job& job) const override {
    const ModelOptions& model = job.model;
    const VisionEncoderDecoderConfig config = plain_config(model);
    return fmt::format(
        "{} that reads images of {} x {} ({} layers, {} wide, {} rows); decoder: {}-norm {}, {}, {} "
        "positions, dropout {:g}, of attention {:g}",
        model.image_encoder, config.encoder.image.height, config.encoder.image.width, config.encoder.layers(),
        config.encoder.width(), config.encoder.rows(), model.norm_position, model.norm, model.activation,
        model.positions, config.decoder.options.dropout, config.decoder.options.attention_dropout);
  }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (!is_huggingface_vision_encoder_decoder(path)) return std::nullopt;
    const auto folder = std::make_shared<HuggingFaceVisionEncoderDecoder>(path);
    ModelSource source = foreign_source("Hugging Face folder", path, folder->model());
    source.job.task = "image_to_text";
    source.tokenizer = [path] { return load_tokenizer(path); };
    source.check = [folder](const ParameterStore& store) { folder->check(store); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) { folder->load_into(store, nonfinite); };
    source.config = plain_config(source.model);
    return source;
  }

  void check_huggingface(const ModelOptions& model) const override {
    check_huggingface_vision_encoder_decoder(resolved(model));
  }

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    ModelOptions options = resolved(model.job.model);
    const ImageInput image = plain_config(options).encoder.image;
    options.image_size = {image.height, image.width};  // a job may leave it to its processor
    options.image_processor = preprocessor_config_text(image.processing);
    write_huggingface_vision_encoder_decoder(folder, options, model.store, *model.tokenizer, type,
                                             model.job.training.max_length);
    return "VisionEncoderDecoderModel";
  }

 private:
  static ModelOptions resolved(ModelOptions model) {
    resolve_image_encoder(model);
    resolve_encoder_decoder(model);
    return model;
  }
  // With nothing frozen.
  static VisionEncoderDecoderConfig plain_config(const ModelOptions& options) {
    const ModelOptions model = resolved(options);
    return {.encoder = image_encoder_config(model), .decoder = text_decoder_config(model)};
  }
};

}  // namespace

const Architecture& vision_encoder_decoder_architecture() {
  static const VisionEncoderDecoderArchitecture architecture;
  return architecture;
}

}  // namespace brisk
