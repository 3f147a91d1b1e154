#include "checkpoint/warm_start.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fine_tuned.h"
#include "hub/formats/safetensors.h"

namespace brisk {

namespace {

// "layers.1.up.weight" there, for layer 1 that begins as layer 2: "layers.2.up.weight".
std::string name_there(const std::string& name, const std::vector<int64_t>& layers) {
  constexpr std::string_view kLayers = "layers.";
  if (layers.empty() || !name.starts_with(kLayers)) return name;
  size_t layer = 0;
  const char* end = std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer).ptr;
  return fmt::format("{}{}{}", kLayers, layers.at(layer), std::string_view(end, name.data() + name.size()));
}

}  // namespace

bool is_head_parameter(std::string_view name) {
  return name.starts_with("pooler.") || name.starts_with("classifier.") || name.starts_with("mlm");
}

void initialise_what_may_be_missing(ParameterStore& store, uint64_t seed) {
  ParameterStore drawn;  // draws depend on the seed and the name alone
  std::vector<std::pair<const Parameter*, const Parameter*>> copies;
  for (const auto& parameter : store.all()) {
    if (!parameter->spec.adapter && !is_head_parameter(parameter->spec.name)) continue;
    copies.emplace_back(parameter.get(), drawn.add(parameter->spec));
  }
  if (copies.empty()) return;
  drawn.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  drawn.initialise(seed);
  for (const auto& [to, from] : copies) {
    std::vector<float> numbers(static_cast<size_t>(from->count()));
    drawn.read(*from, 0, numbers);
    store.write(*to, 0, numbers);
  }
}

EncoderLoading load_encoder(const std::string& checkpoint, ParameterStore& store, const std::vector<int64_t>& layers,
                            NonFinite nonfinite) {
  const SafetensorsFile trained(checkpoint + "/model.safetensors");
  std::unique_ptr<SafetensorsFile> frozen;
  const std::string frozen_path = (std::filesystem::absolute(checkpoint) / "../..").lexically_normal() / kFrozenFile;
  if (file_exists(frozen_path)) frozen = std::make_unique<SafetensorsFile>(frozen_path);
  check_model_bytes(checkpoint);
  EncoderLoading loading;
  std::set<std::string> used;
  struct Copy {
    const Parameter* parameter;
    const SafetensorsEntry* entry;
  };
  std::vector<Copy> copies;
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    const std::string name = name_there(spec.name, layers);
    const SafetensorsEntry* entry = trained.find(name);
    if (entry == nullptr && frozen) entry = frozen->find(name);
    used.insert(name);
    const bool fits = entry != nullptr && entry->type == SafetensorsType::f32 &&
                      entry->shape == std::vector<int64_t>{spec.rows, spec.cols};
    if (fits) {
      copies.push_back({parameter.get(), entry});
    } else if (entry == nullptr && is_head_parameter(spec.name)) {
      loading.missing.push_back(spec.name);
    } else if (spec.name.starts_with("classifier.")) {
      loading.replaced.push_back(spec.name);
      loading.labels_there = spec.name.ends_with(".bias") ? entry->shape.back() : entry->shape.front();
    } else {
      user_error("{}: '{}' is {}, expected [{}, {}]; is it an encoder of this shape?", checkpoint, name,
                 entry == nullptr ? "missing" : fmt::format("[{}]", fmt::join(entry->shape, ", ")), spec.rows,
                 spec.cols);
    }
  }
  for (const SafetensorsEntry& entry : trained.entries()) {
    if (!used.contains(entry.name)) loading.ignored.push_back(entry.name);
  }
  if (nonfinite == NonFinite::refuse) {
    std::vector<const SafetensorsEntry*> tensors;
    for (const Copy& copy : copies) tensors.push_back(copy.entry);
    check_finite(checkpoint, tensors);
  }
  for (const Copy& copy : copies) {
    std::vector<float> numbers(static_cast<size_t>(copy.parameter->count()));
    std::memcpy(numbers.data(), copy.entry->data, static_cast<size_t>(copy.entry->bytes));
    store.write(*copy.parameter, 0, numbers);
  }
  return loading;
}

}  // namespace brisk
