#include "train/task/frozen_activations.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/terminal/work_bar.h"
#include "checkpoint/store_checksum.h"
#include "data/examples/example_sequences.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/forward_run.h"
#include "ops/optimizer/parameters.h"
#include "train/task/classify_task.h"

namespace brisk {

namespace {

constexpr uint64_t kFrozenRowsFormat = 1;
constexpr const char* kFrozenRowsKind = "activations";

EncoderConfig without_head(EncoderConfig config) {
  config.head = EncoderConfig::Head::none;
  config.lone_pooler = false;
  config.cached_layers = 0;
  return config;
}

bool is_below(const Parameter& parameter, int64_t layers) {
  constexpr std::string_view kLayers = "layers.";
  const std::string_view name = parameter.spec.name;
  if (!name.starts_with(kLayers)) return true;  // the embeddings
  int64_t layer = 0;
  std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer < layers;
}

}  // namespace

FrozenLayers::FrozenLayers(EncoderConfig config, int64_t layers, DType compute_type,
                           const std::function<void(ParameterStore&)>& load)
    : config_(without_head(config)), layers_(layers), encoder_(config_, store_) {
  store_.allocate(cpu_device(), {}, compute_type, ParameterStore::Purpose::inference);
  load(store_);
  refresh_compute_copies(store_);
  weights_key_ = checksum_of_parameters(store_, [&](const Parameter& p) { return is_below(p, layers_); });
  const uint64_t shape[] = {kFrozenRowsFormat, config_.fingerprint(), static_cast<uint64_t>(of_picked_rows()),
                            static_cast<uint64_t>(compute_type)};
  for (const uint64_t part : shape) weights_key_ = hash_mix(weights_key_, part);
}

uint64_t FrozenLayers::key_of(const ExampleSet& examples, int64_t max_length) const {
  const std::string tokens = std::filesystem::path(examples.data().cache_path()).stem().string();
  return hash_mix(hash_bytes(tokens, weights_key_), static_cast<uint64_t>(max_length));
}

ExampleActivationsShape FrozenLayers::shape_of(const ExampleSet& all, int64_t max_length) const {
  const bool one_each = of_picked_rows();
  return {.examples = all.count(),
          .row_bytes = config_.d_model * size_of(store_.compute_type()),
          .rows_of = [&all, max_length, one_each](int64_t example) {
            return one_each ? 1 : all.length(example, max_length);
          }};
}

int64_t FrozenLayers::file_bytes(const ExampleSet& examples, int64_t max_length) const {
  const ExampleSet all = examples.whole();
  return shape_of(all, max_length).file_bytes();
}

bool FrozenLayers::are_there(const ExampleSet& examples, int64_t max_length) const {
  const ExampleSet all = examples.whole();
  return has_example_activations(examples.data().cache_directory(), kFrozenRowsKind, key_of(examples, max_length),
                                 shape_of(all, max_length));
}

std::shared_ptr<const ExampleActivations> FrozenLayers::rows_of(const ExampleSet& examples, int64_t max_length) const {
  const ExampleSet all = examples.whole();
  return open_or_make_example_activations(examples.data().cache_directory(), kFrozenRowsKind,
                                          key_of(examples, max_length), shape_of(all, max_length),
                                          [&](ExampleActivationsWriter& writer) { make(all, max_length, writer); });
}

void FrozenLayers::make(const ExampleSet& all, int64_t max_length, ExampleActivationsWriter& writer) const {
  const BatchLayout layout = first_rows_layout(1);
  const RowCapacity capacity = layout.capacity(std::max(max_length, kMicroBatchTokens / 2), max_length);
  ForwardRun run(store_, {.rows = layout.capacities(capacity)},
                 [&](Tape& tape) { return encoder_.rows_after(tape, layers_); });
  WorkBar bar("activations of the frozen layers");
  const int64_t total = shape_of(all, max_length).file_bytes();
  int64_t done = 0;
  Ledger ledger;
  std::vector<std::byte> host;
  run.forward(ExampleSequences(all, max_length), ledger, [&](const MicroBatch&) {
    run.read(host);
    writer.append(host);
    bar.update(done += std::ssize(host), total);
  });
}

}  // namespace brisk
