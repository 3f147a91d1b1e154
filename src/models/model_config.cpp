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

bool is_same_config(const ModelConfig& config, const ModelConfig& other) {
  return &config.functions() == &other.functions() && config.functions().equal(config.config_, other.config_);
}

}  // namespace brisk
