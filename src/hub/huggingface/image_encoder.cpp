#include "hub/huggingface/image_encoder.h"

#include <fmt/format.h>

#include "base/error.h"

namespace brisk {

namespace {

class ImageEncoderNames {
 public:
  ImageEncoderNames(const ParameterStore& store, std::string ours, std::string theirs)
      : store_(store), ours_(std::move(ours)), theirs_(std::move(theirs)) {}

  // Of a parameter that the store has. `shape`: of their tensor, where that is neither a matrix nor a vector.
  void add(const std::string& ours, const std::vector<std::string>& theirs, std::vector<int64_t> shape = {}) {
    const Parameter* parameter = store_.find(ours_ + ours);
    if (parameter == nullptr) return;
    const auto parts = static_cast<int64_t>(theirs.size());
    const bool vector = parameter->spec.rows == 1;
    WeightMap entry{ours_ + ours, {}};
    for (const std::string& name : theirs) {
      WeightPart part{.name = theirs_ + name,
                      .outputs = vector ? parameter->spec.cols / parts : parameter->spec.rows / parts,
                      .inputs = vector ? 0 : parameter->spec.cols};
      part.shape_there = shape;
      entry.parts.push_back(std::move(part));
    }
    map_.push_back(std::move(entry));
  }
  void pair(const std::string& ours, const std::vector<std::string>& theirs, const char* first = ".weight") {
    std::vector<std::string> weights, biases;
    for (const std::string& name : theirs) {
      weights.push_back(name + ".weight");
      biases.push_back(name + ".bias");
    }
    add(ours + first, weights);
    add(ours + ".bias", biases);
  }
  void norm(const std::string& ours, const std::string& theirs) { pair(ours, {theirs}, ".gain"); }

  bool has(const std::string& ours) const { return store_.find(ours_ + ours) != nullptr; }
  const ParameterSpec& spec(const std::string& ours) const { return store_.find(ours_ + ours)->spec; }

  // The class token and the bias of the patches, which are one table here.
  void add_table(const std::string& bias, const std::string& token) {
    const int64_t width = spec("patches.table").cols;
    WeightPart of_token{.name = theirs_ + token, .outputs = width};
    of_token.shape_there = {1, 1, width};
    map_.push_back({ours_ + "patches.table", {{.name = theirs_ + bias, .outputs = width}, std::move(of_token)}});
  }

  void layer(const std::string& ours, const std::string& theirs, bool swin) {
    const std::string attention = theirs + (swin ? "attention.self." : "attention.attention.");
    norm(ours + "attention_norm", theirs + "layernorm_before");
    pair(ours + "qkv", {attention + "query", attention + "key", attention + "value"});
    add(ours + "query.bias", {attention + "query.bias"});
    add(ours + "value.bias", {attention + "value.bias"});
    const char* table = "relative_position_bias_table";
    add(ours + "relative.weight", {attention + (swin ? "" : "relative_position_bias.") + table});
    pair(ours + "attention_out", {theirs + "attention.output.dense"});
    add(ours + "attention_scale", {theirs + "lambda_1"});
    norm(ours + "feed_forward_norm", theirs + "layernorm_after");
    pair(ours + "up", {theirs + "intermediate.dense"});
    pair(ours + "down", {theirs + "output.dense"});
    add(ours + "feed_forward_scale", {theirs + "lambda_2"});
  }
  std::vector<WeightMap> take() { return std::move(map_); }

 private:
  const ParameterStore& store_;
  std::string ours_, theirs_;
  std::vector<WeightMap> map_;
};

}  // namespace

bool is_derived_tensor(const std::string& name) { return name.ends_with("relative_position_index"); }

std::vector<WeightMap> image_encoder_weight_map(const std::string& image_encoder, const ParameterStore& store,
                                                const std::string& ours, const std::string& theirs,
                                                const std::vector<int64_t>& layers) {
  const bool swin = image_encoder == "swin";
  ImageEncoderNames map(store, ours, theirs);
  BRISK_CHECK(map.has("patches.weight"), "no image encoder whose parameters are called {}...", ours);
  const std::string projection = "embeddings.patch_embeddings.projection";
  const ParameterSpec& patches = map.spec("patches.weight");
  int64_t side = 1;
  while (3 * side * side < patches.cols) ++side;
  map.add("patches.weight", {projection + ".weight"}, {patches.rows, 3, side, side});
  map.add("patches.bias", {projection + ".bias"});
  if (map.has("patches.table")) map.add_table(projection + ".bias", "embeddings.cls_token");
  map.norm("embedding_norm", "embeddings.norm");
  if (map.has("positions.weight")) {
    const ParameterSpec& positions = map.spec("positions.weight");
    map.add("positions.weight", {"embeddings.position_embeddings"}, {1, positions.rows, positions.cols});
  }
  map.add("relative.weight", {"encoder.relative_position_bias.relative_position_bias_table"});
  for (int64_t l = 0; map.has(fmt::format("layers.{}.qkv.weight", l)); ++l) {
    BRISK_CHECK(layers.empty() || l < std::ssize(layers), "layer {} of {}", l, layers.size());
    const int64_t there = layers.empty() ? l : layers[static_cast<size_t>(l)];
    map.layer(fmt::format("layers.{}.", l), fmt::format("encoder.layer.{}.", there), swin);
  }
  for (int64_t s = 0; map.has(fmt::format("stages.{}.layers.0.qkv.weight", s)); ++s) {
    const std::string here = fmt::format("stages.{}.", s), there = fmt::format("encoder.layers.{}.", s);
    for (int64_t l = 0; map.has(fmt::format("{}layers.{}.qkv.weight", here, l)); ++l) {
      map.layer(fmt::format("{}layers.{}.", here, l), fmt::format("{}blocks.{}.", there, l), swin);
    }
    map.norm(here + "merge_norm", there + "downsample.norm");
    map.add(here + "merge.weight", {there + "downsample.reduction.weight"});
  }
  map.norm("final_norm", "layernorm");
  return map.take();
}

}  // namespace brisk
