// The configuration of any architecture, as a value: it is copied and saved, and a model is made of it as often as one
// is needed (to plan memory, to train, to use).
//
//   ModelConfig config = DecoderConfig{.vocab_size = 10000};
//   ParameterStore store;
//   std::unique_ptr<Model> model = make_model(config, store);
//
// An architecture's own configuration is a plain struct with three functions and a comparison of all its fields, by which
// an option of a job that the architecture does not read is found (infer/architecture/unread_options.h):
//
//   struct ToyConfig {
//     int64_t vocab_size = 0, d_model = 64;
//     std::unique_ptr<Model> make(ParameterStore& store) const;
//     ModelWidths widths() const { return {d_model, d_model}; }
//     uint64_t fingerprint() const { return fingerprint_of("toy", vocab_size, d_model); }
//     bool operator==(const ToyConfig&) const = default;
//   };
#pragma once

#include <any>
#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "models/model.h"
#include "tensor/parameter.h"

namespace brisk {

// The widest product's two sides.
struct ModelWidths {
  int64_t d_model, d_ff;
};

class ModelConfig;

template <typename Config>
concept ArchitectureConfig = !std::same_as<Config, ModelConfig> && std::copyable<Config> &&
                             requires(const Config& config, ParameterStore& store) {
  { config.make(store) } -> std::same_as<std::unique_ptr<Model>>;
  { config.widths() } -> std::same_as<ModelWidths>;
  { config.fingerprint() } -> std::same_as<uint64_t>;
  { config == config } -> std::same_as<bool>;
};

class ModelConfig {
 public:
  ModelConfig() = default;  // of no architecture: nothing can be made of it
  template <ArchitectureConfig Config>
  ModelConfig(Config config)  // NOLINT: every architecture's configuration is one
      : config_(std::move(config)), functions_(&kFunctions<Config>) {}

  // The architecture's own configuration; nullptr where it is another's.
  template <ArchitectureConfig Config>
  const Config* get_if() const {
    return std::any_cast<Config>(&config_);
  }
  template <ArchitectureConfig Config>
  Config* get_if() {
    return std::any_cast<Config>(&config_);
  }

 private:
  struct Functions {
    std::unique_ptr<Model> (*make)(const std::any& config, ParameterStore& store);
    ModelWidths (*widths)(const std::any& config);
    uint64_t (*fingerprint)(const std::any& config);
    bool (*equal)(const std::any& config, const std::any& other);
  };
  template <typename Config>
  static const Config& held(const std::any& config) {
    return *std::any_cast<Config>(&config);
  }
  template <typename Config>
  static constexpr Functions kFunctions = {
      [](const std::any& config, ParameterStore& store) { return held<Config>(config).make(store); },
      [](const std::any& config) { return held<Config>(config).widths(); },
      [](const std::any& config) { return held<Config>(config).fingerprint(); },
      [](const std::any& config, const std::any& other) { return held<Config>(config) == held<Config>(other); }};

  const Functions& functions() const;

  std::any config_;
  const Functions* functions_ = nullptr;

  friend std::unique_ptr<Model> make_model(const ModelConfig& config, ParameterStore& store);
  friend ModelWidths model_widths(const ModelConfig& config);
  friend uint64_t fingerprint(const ModelConfig& config);
  friend bool is_same_config(const ModelConfig& config, const ModelConfig& other);
};

// Declares the parameters in `store`.
std::unique_ptr<Model> make_model(const ModelConfig& config, ParameterStore& store);

ModelWidths model_widths(const ModelConfig& config);

// Two models with the same parameters and the same fingerprint compute the same function, dropout aside: the key, with
// a checksum of the parameters, of every cache that holds what a model computed.
uint64_t fingerprint(const ModelConfig& config);

// The same in every field: also in those that only training reads, as dropout.
bool is_same_config(const ModelConfig& config, const ModelConfig& other);

// For ArchitectureConfig::fingerprint(): the name of the architecture and every field that changes the function.
template <typename... Fields>
uint64_t fingerprint_of(std::string_view architecture, const Fields&... fields) {
  uint64_t hash = hash_bytes(architecture);
  const auto add = [&hash](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_floating_point_v<Field>) {
      hash = hash_mix(hash, std::bit_cast<uint64_t>(static_cast<double>(field)));
    } else if constexpr (std::is_convertible_v<Field, std::string_view>) {
      hash = hash_bytes(field, hash);
    } else {
      hash = hash_mix(hash, static_cast<uint64_t>(field));
    }
  };
  (add(fields), ...);
  return hash;
}

}  // namespace brisk
