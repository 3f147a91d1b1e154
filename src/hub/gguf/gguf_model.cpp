#include "hub/gguf/gguf_model.h"

#include "base/error.h"
#include "base/text/printable.h"
#include "hub/gguf/gguf_tokenizer.h"
#include "hub/huggingface/decoder_config.h"
#include "hub/model_limits.h"
#include "hub/weight_map.h"

namespace brisk {

namespace {

using namespace model_limits;

std::vector<WeightMap> gguf_weight_map(const ModelOptions& model) {
  const int64_t D = model.d_model, F = model.d_ff, V = model.vocab_size, K = D / model.num_heads;
  const int64_t queries = model.num_heads * K, keys = model.num_kv_heads * K;
  std::vector<WeightMap> map;
  const auto gain = [&](const std::string& ours, const std::string& theirs) {
    map.push_back({ours + ".gain", {{.name = theirs + ".weight", .outputs = D}}});
  };
  struct Product {
    std::string name;
    int64_t outputs;
  };
  const auto linear = [&](const std::string& ours, const std::vector<Product>& products, int64_t inputs) {
    WeightMap weight{ours + ".weight", {}}, bias{ours + ".bias", {}};
    for (const Product& product : products) {
      weight.parts.push_back({.name = product.name + ".weight", .outputs = product.outputs, .inputs = inputs});
      bias.parts.push_back({.name = product.name + ".bias", .outputs = product.outputs});
    }
    map.push_back(std::move(weight));
    if (model.bias) map.push_back(std::move(bias));
  };
  map.push_back({"embedding.weight", {{.name = "token_embd.weight", .outputs = V, .inputs = D}}});
  for (int64_t l = 0; l < model.num_layers; ++l) {
    const std::string ours = fmt::format("layers.{}.", l), theirs = fmt::format("blk.{}.", l);
    gain(ours + "attention_norm", theirs + "attn_norm");
    linear(ours + "qkv", {{theirs + "attn_q", queries}, {theirs + "attn_k", keys}, {theirs + "attn_v", keys}}, D);
    linear(ours + "attention_out", {{theirs + "attn_output", D}}, queries);
    gain(ours + "feed_forward_norm", theirs + "ffn_norm");
    linear(ours + "up", {{theirs + "ffn_gate", F}, {theirs + "ffn_up", F}}, D);
    linear(ours + "down", {{theirs + "ffn_down", D}}, F);
  }
  gain("final_norm", "output_norm");
  if (!model.tie_embeddings) map.push_back({"head.weight", {{.name = "output.weight", .outputs = V, .inputs = D}}});
  return map;
}

SafetensorsType safetensors_type(uint32_t type) {
  return type == static_cast<uint32_t>(GgufType::f32)   ? SafetensorsType::f32
         : type == static_cast<uint32_t>(GgufType::f16) ? SafetensorsType::f16
                                                        : SafetensorsType::bf16;
}

class MetadataReader {
 public:
  explicit MetadataReader(const GgufFile& file) : file_(file) {}

  int64_t size(const std::string& key, int64_t most) const {
    const GgufValue* value = file_.value(key);
    if (value == nullptr) user_error("{}: it has no {}; convert the model again", file_.path(), key);
    const int64_t* number = std::get_if<int64_t>(value);
    if (number == nullptr || *number < 1 || *number > most) {
      user_error("{}: {} is {}, expected an integer from 1 to {}", file_.path(), key,
                 number == nullptr ? "of the wrong type" : fmt::format("{}", *number), most);
    }
    return *number;
  }
  int64_t size_or(const std::string& key, int64_t otherwise, int64_t most) const {
    return file_.value(key) == nullptr ? otherwise : size(key, most);
  }
  // A number above `least`, at most `most`.
  double number_or(const std::string& key, double otherwise, double least, double most) const {
    const GgufValue* value = file_.value(key);
    if (value == nullptr) return otherwise;
    const double* number = std::get_if<double>(value);
    if (number == nullptr || !(*number > least && *number <= most)) {
      user_error("{}: {} is {}, expected a number above {} and at most {}", file_.path(), key,
                 number == nullptr ? "of the wrong type" : fmt::format("{}", *number), least, most);
    }
    return *number;
  }
  std::string text(const std::string& key) const {
    const GgufValue* value = file_.value(key);
    const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return text == nullptr ? "" : *text;
  }

 private:
  const GgufFile& file_;
};

auto finder_in(const std::map<std::string, SafetensorsEntry>& entries) {
  return [&entries](const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  };
}

ModelOptions read_options(const GgufFile& file) {
  const MetadataReader reader(file);
  const std::string architecture = reader.text("general.architecture");
  if (architecture != "llama") {
    user_error("{}: general.architecture is {}, which brisk does not read from GGUF; it reads llama", file.path(),
               architecture.empty() ? "missing" : in_quotes(architecture));
  }
  ModelOptions model;
  model.norm = "rmsnorm";
  model.activation = "swiglu";
  model.positions = "rotary";
  model.d_model = reader.size("llama.embedding_length", kWidest);
  model.num_layers = reader.size("llama.block_count", kMostLayers);
  model.num_heads = reader.size("llama.attention.head_count", kMostHeads);
  model.num_kv_heads = reader.size_or("llama.attention.head_count_kv", model.num_heads, kMostHeads);
  model.d_ff = reader.size("llama.feed_forward_length", kWidestInside);
  model.context = reader.size("llama.context_length", kLongestContext);
  model.norm_epsilon = reader.number_or("llama.attention.layer_norm_rms_epsilon", 1e-5, 0, kLargestEpsilon);
  model.rope_theta = reader.number_or("llama.rope.freq_base", 10000, kLeastRopeTheta, 1e30);
  model.tie_embeddings = file.find("output.weight") == nullptr;
  model.bias = file.find("blk.0.attn_q.bias") != nullptr;
  const GgufTensor* table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2) {
    user_error("{}: it has no matrix 'token_embd.weight'; convert the model again", file.path());
  }
  model.vocab_size = table->shape[0];
  if (model.vocab_size < 1 || model.vocab_size > kLargestVocabulary || table->shape[1] != model.d_model) {
    user_error("{}: 'token_embd.weight' is [{}], expected 1 to {} rows of {} columns (llama.embedding_length)",
               file.path(), fmt::join(table->shape, ", "), kLargestVocabulary, model.d_model);
  }
  if (model.d_model % model.num_heads != 0 || model.d_model / model.num_heads % 2 != 0 ||
      model.num_heads % model.num_kv_heads != 0) {
    user_error(
        "{}: a width of {} in {} heads and {} key/value heads: expected heads of equal and even width, in equal groups",
        file.path(), model.d_model, model.num_heads, model.num_kv_heads);
  }
  const int64_t turned = reader.size_or("llama.rope.dimension_count", model.d_model / model.num_heads, kWidest);
  const std::string scaling = reader.text("llama.rope.scaling.type");
  if (turned != model.d_model / model.num_heads || (!scaling.empty() && scaling != "none") ||
      file.find("rope_freqs.weight") != nullptr) {
    user_error("{}: its rotary positions are partial or scaled, which brisk does not support", file.path());
  }
  if (file.value("llama.expert_count") != nullptr) {
    user_error("{}: llama.expert_count: a mixture of experts, which brisk does not support", file.path());
  }
  return model;
}

}  // namespace

GgufModel::GgufModel(const std::string& path) : GgufModel(GgufFile(path)) {}

GgufModel::GgufModel(GgufFile file) : file_(std::move(file)), options_(read_options(file_)) {}

std::unique_ptr<Tokenizer> GgufModel::tokenizer() const { return tokenizer_of(file_); }

std::map<std::string, SafetensorsEntry> GgufModel::entries() const {
  std::map<std::string, SafetensorsEntry> entries;
  for (const GgufTensor& tensor : file_.tensors()) {
    if (!tensor.is_readable()) {
      user_error("{}: '{}' is quantised ({}); brisk reads F32, F16 and BF16: take a file without quantisation",
                 file_.path(), tensor.name, gguf_type_name(tensor.type));
    }
    entries[tensor.name] = {tensor.name, safetensors_type(tensor.type), tensor.shape, tensor.data, tensor.bytes};
  }
  return entries;
}

void GgufModel::check() const {
  const std::map<std::string, SafetensorsEntry> there = entries();
  std::vector<std::string> names;
  for (const auto& [name, entry] : there) names.push_back(name);
  check_layers(names, "blk.", options_.num_layers, file_.path());
  check_weights(gguf_weight_map(options_), {file_.path(), finder_in(there)});
}

void GgufModel::load_into(ParameterStore& store, NonFinite nonfinite) const {
  const std::map<std::string, SafetensorsEntry> there = entries();
  load_weights(gguf_weight_map(options_), {file_.path(), finder_in(there), nonfinite}, store);
}

void write_gguf(const std::string& path, const std::string& name, const ModelOptions& model,
                const ParameterStore& store, const Tokenizer& tokenizer, GgufType type) {
  llama_config_for(model, "GGUF");
  if (file_exists(path)) user_error("{}: the file already exists; choose another name with --output", path);
  const auto size = [](int64_t value) { return static_cast<uint32_t>(value); };
  const uint32_t head_width = size(model.d_model / model.num_heads);
  GgufWriter writer(path);
  writer.set("general.architecture", "llama");
  writer.set("general.name", name);
  // llama.cpp's number for "mostly" this type.
  writer.set("general.file_type", uint32_t{type == GgufType::f32 ? 0u : type == GgufType::f16 ? 1u : 32u});
  writer.set("llama.context_length", size(model.context));
  writer.set("llama.embedding_length", size(model.d_model));
  writer.set("llama.block_count", size(model.num_layers));
  writer.set("llama.feed_forward_length", size(model.d_ff));
  writer.set("llama.attention.head_count", size(model.num_heads));
  writer.set("llama.attention.head_count_kv", size(model.num_kv_heads));
  writer.set("llama.attention.key_length", head_width);
  writer.set("llama.attention.value_length", head_width);
  writer.set("llama.attention.layer_norm_rms_epsilon", static_cast<float>(model.norm_epsilon));
  writer.set("llama.rope.dimension_count", head_width);
  writer.set("llama.rope.freq_base", static_cast<float>(model.rope_theta));
  writer.set("llama.vocab_size", size(model.vocab_size));
  set_tokenizer(writer, tokenizer, model.vocab_size);
  for (const WeightMap& entry : gguf_weight_map(model)) {
    const bool matrices = entry.parts.front().inputs > 0;
    const GgufType stored = matrices ? type : GgufType::f32;
    for (const StoredTensor& tensor : stored_tensors(entry, store, safetensors_type(static_cast<uint32_t>(stored)))) {
      writer.add(tensor.name, stored, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
}

}  // namespace brisk
