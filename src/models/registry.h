// The architectures there are. A ModelConfig is a value: it is copied, compared by the eye and saved, and a model is
// made of it as often as one is needed (to plan memory, to train, to use).
//
//   ModelConfig config = DecoderConfig{.vocab_size = 10000};
//   ParameterStore store;
//   std::unique_ptr<Model> model = make_model(config, store);
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "models/component_cost.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "models/model.h"

namespace brisk {

using ModelConfig = std::variant<DecoderConfig, EncoderConfig>;

std::unique_ptr<Model> make_model(const ModelConfig& config, ParameterStore& store);

// What training costs by component, at sequences of `mean_length` rows; `picked`: the rows of one that have targets,
// where not all have.
std::vector<ComponentCost> model_costs(const ModelConfig& config, double mean_length, double picked = 0);
// Their sum: the FLOP of utilisation (docs/architecture.md).
double model_flop_per_token(const ModelConfig& config, double mean_length, double picked = 0);

// The widest product's two sides.
struct ModelWidths {
  int64_t d_model, d_ff;
};
ModelWidths model_widths(const ModelConfig& config);

// The decoder that it is; an internal error where it is something else.
const Decoder& as_decoder(const Model& model);

}  // namespace brisk
