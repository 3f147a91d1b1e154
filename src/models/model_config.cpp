#include "models/model_config.h"

#include "base/error.h"

namespace brisk {

const ModelConfig::Functions& ModelConfig::functions() const {
  BRISK_CHECK(functions_ != nullptr, "a model configuration of no architecture");
  return *functions_;
}

std::unique_ptr<Model> make_model(const ModelConfig& config, ParameterStore& store) {
  return config.functions().make(config.config_, store);
}

std::vector<ComponentCost> model_costs(const ModelConfig& config, double mean_length, double picked) {
  return config.functions().costs(config.config_, mean_length, picked);
}

double model_flop_per_token(const ModelConfig& config, double mean_length, double picked) {
  double sum = 0;
  for (const ComponentCost& cost : model_costs(config, mean_length, picked)) sum += cost.flop_per_token;
  return sum;
}

ModelWidths model_widths(const ModelConfig& config) { return config.functions().widths(config.config_); }

uint64_t fingerprint(const ModelConfig& config) { return config.functions().fingerprint(config.config_); }

}  // namespace brisk
