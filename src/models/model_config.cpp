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

ModelWidths model_widths(const ModelConfig& config) { return config.functions().widths(config.config_); }

uint64_t fingerprint(const ModelConfig& config) { return config.functions().fingerprint(config.config_); }

}  // namespace brisk
