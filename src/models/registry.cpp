#include "models/registry.h"

#include "base/error.h"

namespace brisk {

namespace {

std::unique_ptr<Model> make(const DecoderConfig& config, ParameterStore& store) {
  return std::make_unique<Decoder>(config, store);
}

std::unique_ptr<Model> make(const EncoderConfig& config, ParameterStore& store) {
  return std::make_unique<Encoder>(config, store);
}

std::vector<ComponentCost> costs(const EncoderConfig& config, double mean_length, double picked) {
  return encoder_costs(config, mean_length, picked);
}

std::vector<ComponentCost> costs(const DecoderConfig& config, double mean_length, double /*picked*/) {
  return decoder_costs(config, mean_length);
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelConfig& config, ParameterStore& store) {
  return std::visit([&](const auto& kind) { return make(kind, store); }, config);
}

std::vector<ComponentCost> model_costs(const ModelConfig& config, double mean_length, double picked) {
  return std::visit([&](const auto& kind) { return costs(kind, mean_length, picked); }, config);
}

double model_flop_per_token(const ModelConfig& config, double mean_length, double picked) {
  double sum = 0;
  for (const ComponentCost& cost : model_costs(config, mean_length, picked)) sum += cost.flop_per_token;
  return sum;
}

ModelWidths model_widths(const ModelConfig& config) {
  return std::visit([](const auto& kind) { return ModelWidths{kind.d_model, kind.d_ff}; }, config);
}

const Decoder& as_decoder(const Model& model) {
  const auto* decoder = dynamic_cast<const Decoder*>(&model);
  BRISK_CHECK(decoder != nullptr, "not a decoder");
  return *decoder;
}

}  // namespace brisk
