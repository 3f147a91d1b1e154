// DIMTDA (models/dimtda.h): the page's encoder and the decoder by the options that other models of images have, the layout's
// encoder and the queries by their own (job/job_dimtda_options.cpp).
#include <fmt/format.h>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/image_encoder_options.h"
#include "infer/architecture/text_decoder_options.h"
#include "job/job_task.h"
#include "models/dimtda.h"

namespace brisk {

namespace {

ImageEncoderConfig layout_encoder(const ModelOptions& model) {
  ImageEncoderConfig config;
  config.kind = ImageEncoderConfig::Kind::beit;
  config.image = image_input_of(model.layout_processor, {model.layout_image_size}, model.layout_patch_size, true,
                                "model.layout_image_size", "model.layout_processor");
  config.d_model = model.layout_d_model;
  config.num_layers = model.layout_layers;
  config.num_heads = model.layout_heads;
  config.d_ff = model.layout_d_ff > 0 ? model.layout_d_ff : 4 * model.layout_d_model;
  config.layer_scale = 0.1;
  config.final_norm = false;
  check_image_encoder(config, "model.layout");
  return config;
}

class DimtdaArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    DimtdaConfig config = plain_config(job.model);
    if (job.training.freeze_encoders) {
      if (job.model.from.empty() && job.model.layout_encoder_from.empty()) {
        user_error(
            "training.freeze_encoders would freeze a layout encoder that nobody trained: name the model that it begins as "
            "(model.layout_encoder_from)");
      }
      config.page.frozen = config.page.layers();
      config.layout.frozen = config.layout.layers();
    }
    return config;
  }
  ModelConfig cached_config(const Job& job) const override {
    ModelConfig config = training_config(job);
    DimtdaConfig& own = *config.get_if<DimtdaConfig>();
    own.page.cached = own.layout.cached = true;
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
      parts.push_back(image_encoder_part("model.image_encoder_from", model.image_encoder_from, "page_encoder."));
    }
    if (!model.layout_encoder_from.empty()) {
      parts.push_back(image_encoder_part("model.layout_encoder_from", model.layout_encoder_from, "layout_encoder."));
    }
    if (!model.decoder_from.empty()) parts.push_back(text_decoder_part("model.decoder_from", model.decoder_from));
    return parts;
  }

  std::string describe(const Job& job) const override {
    const DimtdaConfig config = plain_config(job.model);
    return fmt::format(
        "a Swin that reads pages of {} x {} ({} layers), a BEiT that reads them of {} x {} ({} layers), {} queries of width {} "
        "for each, a gate; dropout {:g}",
        config.page.image.height, config.page.image.width, config.page.layers(), config.layout.image.height,
        config.layout.image.width, config.layout.layers(), config.queries, config.query_sizes.d_model,
        job.model.dropout);
  }

 private:
  static DimtdaConfig plain_config(ModelOptions model) {
    resolve_image_encoder(model);
    resolve_encoder_decoder(model);
    DimtdaConfig config;
    config.page = image_encoder_config(model);
    config.layout = layout_encoder(model);
    config.queries = model.queries;
    if (model.query_width % model.query_heads != 0) {
      user_error(
          "model.query_width = {} is not divisible by model.query_heads = {}; each head takes an equal share of the width",
          model.query_width, model.query_heads);
    }
    config.query_layers = DimtdaConfig::query_layers_with(model.dropout, model.attention_dropout);
    config.query_sizes = {.d_model = model.query_width,
                          .num_layers = 1,
                          .num_heads = model.query_heads,
                          .head_width = model.query_width / model.query_heads,
                          .d_ff = model.query_d_ff > 0 ? model.query_d_ff : 2 * model.query_width,
                          .max_length = model.queries};
    config.decoder = text_decoder_config(model);
    return config;
  }
};

}  // namespace

const Architecture& dimtda_architecture() {
  static const DimtdaArchitecture architecture;
  return architecture;
}

}  // namespace brisk
