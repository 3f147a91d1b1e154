#include "infer/architecture/image_encoder_options.h"

#include <cmath>

#include "base/error.h"
#include "image/preprocessor_config.h"

namespace brisk {

namespace {

using Kind = ImageEncoderConfig::Kind;

constexpr int64_t kUsualSize = 224;

ImageEncoderConfig::Positions positions_of(const std::string& word) {
  using Positions = ImageEncoderConfig::Positions;
  return word == "learned"           ? Positions::learned
         : word == "relative"        ? Positions::relative
         : word == "shared_relative" ? Positions::shared_relative
                                     : Positions::none;
}

}  // namespace

ImageInput image_input_of(const std::string& processor, const std::vector<int64_t>& size, int64_t patch, bool class_row,
                          const std::string& where, const std::string& processor_option) {
  if (size.size() > 2) user_error("{}: {} numbers; expected one, or a height and a width", where, size.size());
  ImageProcessing processing;
  if (!processor.empty()) processing = parse_preprocessor_config(processor, processor_option);
  const int64_t height = !size.empty() ? size.front() : processor.empty() ? kUsualSize : processing.output_height();
  const int64_t width = !size.empty() ? size.back() : processor.empty() ? kUsualSize : processing.output_width();
  if (height != processing.output_height() || width != processing.output_width()) {
    processing.height = processing.crop_height = height;
    processing.width = processing.crop_width = width;
  }
  const ImageInput input = ImageInput::of(processing, patch, class_row);
  check_image_input(input, where);
  return input;
}

ImageEncoderConfig image_encoder_config(const ModelOptions& model) {
  const bool alone = model.is_encoder();
  ImageEncoderConfig config;
  config.kind = model.image_encoder == "swin" ? Kind::swin : model.image_encoder == "vit" ? Kind::vit : Kind::beit;
  const bool swin = config.kind == Kind::swin;
  config.image = image_input_of(model.image_processor, model.image_size, model.patch_size, !swin, "model.image_size",
                                "model.image_processor");
  config.d_model = alone ? model.d_model : model.encoder_d_model;
  if (!swin || alone) {  // an encoder-decoder with a swin does not read these: its stages have theirs
    config.num_layers = alone ? model.num_layers : model.encoder_layers;
    config.num_heads = alone ? model.num_heads : model.encoder_heads;
    config.d_ff = alone ? model.d_ff : model.encoder_d_ff;
  }
  for (size_t stage = 0; swin && stage < model.encoder_depths.size(); ++stage) {
    const int64_t width = config.d_model << stage;
    config.stages.push_back({.num_layers = model.encoder_depths[stage],
                             .num_heads = model.encoder_stage_heads[stage],
                             .d_ff = static_cast<int64_t>(std::lround(model.mlp_ratio * static_cast<double>(width)))});
  }
  config.window = model.window_size;
  config.positions = positions_of(model.encoder_positions);
  config.norm_epsilon = model.encoder_norm_epsilon;
  config.qkv_bias = model.qkv_bias;
  config.layer_scale = model.layer_scale;
  config.final_norm = model.encoder_final_norm;
  if (alone) {
    config.dropout = model.dropout;
    config.attention_dropout = model.attention_dropout;
  }
  check_image_encoder(config, "model");
  return config;
}

}  // namespace brisk
