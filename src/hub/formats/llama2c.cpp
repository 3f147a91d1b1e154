#include "hub/formats/llama2c.h"

#include <array>
#include <cstring>
#include <set>

#include "base/error.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

constexpr int64_t kHeaderNumbers = 7;
constexpr int64_t kHeaderBytes = kHeaderNumbers * 4;
constexpr uint32_t kMagicOfLaterVersions = 0x616b3432;  // "ak42"; version 0 has no magic

struct HeaderField {
  const char* name;
  int64_t most;
};
using namespace model_limits;
constexpr std::array<HeaderField, kHeaderNumbers> kHeaderFields = {{{"dim", kWidest},
                                                                    {"hidden_dim", kWidestInside},
                                                                    {"n_layers", kMostLayers},
                                                                    {"n_heads", kMostHeads},
                                                                    {"n_kv_heads", kMostHeads},
                                                                    {"vocab_size", kLargestVocabulary},
                                                                    {"seq_len", kLongestContext}}};

void read_header(Llama2cModel& model) {
  const MappedFile& file = model.file;
  if (file.size() < kHeaderBytes) {
    user_error("{}: not a llama2.c model: found {} bytes, the header alone has {}; fetch the file again", model.path,
               file.size(), kHeaderBytes);
  }
  uint32_t first = 0;
  std::memcpy(&first, file.data(), sizeof first);
  if (first == kMagicOfLaterVersions) {
    int32_t version = 0;
    std::memcpy(&version, file.data() + 4, sizeof version);
    user_error("{}: a llama2.c model of version {}, expected version 0; export it again with --version 0", model.path,
               version);
  }
  std::array<int32_t, kHeaderNumbers> numbers;
  std::memcpy(numbers.data(), file.data(), kHeaderBytes);
  std::array<int64_t, kHeaderNumbers> sizes;
  for (size_t i = 0; i < numbers.size(); ++i) {
    sizes[i] = numbers[i];
    if (i == 5 && sizes[i] < 0) {  // the sign of vocab_size says that there is an output projection
      sizes[i] = -sizes[i];
      model.tied = false;
    }
    if (sizes[i] < 1 || sizes[i] > kHeaderFields[i].most) {
      user_error("{}: not a llama2.c model of version 0: {} is {}, expected 1 to {}; check that this is the model file",
                 model.path, kHeaderFields[i].name, numbers[i], kHeaderFields[i].most);
    }
  }
  model.width = sizes[0];
  model.feed_forward_width = sizes[1];
  model.layers = sizes[2];
  model.heads = sizes[3];
  model.key_value_heads = sizes[4];
  model.vocabulary = sizes[5];
  model.context = sizes[6];
  if (model.width % model.heads != 0 || model.head_width() % 2 != 0 || model.heads % model.key_value_heads != 0) {
    user_error(
        "{}: not a llama2.c model: dim {}, n_heads {}, n_kv_heads {}: expected heads of equal and even width, in equal "
        "groups; check that this is the model file",
        model.path, model.width, model.heads, model.key_value_heads);
  }
}

// The file's tensors in their order, each asked for once.
class TensorReader {
 public:
  explicit TensorReader(const Llama2cModel& model) : file_(model.file) {}

  // A size that no file can have is left to the size check at the end.
  std::span<const float> take(std::initializer_list<int64_t> shape) {
    __int128 count = 1;
    for (const int64_t length : shape) count *= length;
    const __int128 first = floats_;
    floats_ += count;
    if (4 * floats_ + kHeaderBytes > file_.size()) return {};
    const auto* data = reinterpret_cast<const float*>(file_.data() + kHeaderBytes) + static_cast<int64_t>(first);
    return {data, static_cast<size_t>(count)};
  }

  __int128 bytes() const { return kHeaderBytes + 4 * floats_; }

 private:
  const MappedFile& file_;
  __int128 floats_ = 0;
};

// Writes rows of a parameter and keeps account of which parameters have been written.
class ParameterFiller {
 public:
  ParameterFiller(const Llama2cModel& model, ParameterStore& store) : model_(model), store_(store) {}

  // The parts lie below each other and make up the whole parameter.
  void fill(const std::string& name, int64_t rows, int64_t cols, std::initializer_list<std::span<const float>> parts) {
    Parameter* parameter = store_.find(name);
    if (parameter == nullptr) {
      user_error("{}: the model has '{}', which the decoder does not have; take the model's options from the file",
                 model_.path, name);
    }
    if (parameter->spec.rows != rows || parameter->spec.cols != cols) {
      user_error("{}: '{}' is [{}, {}] in the file and [{}, {}] in the decoder; take the model's options from the file",
                 model_.path, name, rows, cols, parameter->spec.rows, parameter->spec.cols);
    }
    int64_t offset = 0;
    for (const std::span<const float> part : parts) {
      store_.write(*parameter, offset, part);
      offset += std::ssize(part);
    }
    BRISK_CHECK(offset == parameter->count(), "{}: {} numbers", name, offset);
    filled_.insert(name);
  }

  void check_all_filled() const {
    for (const auto& parameter : store_.all()) {
      if (!parameter->spec.adapter && !filled_.contains(parameter->spec.name)) {
        user_error("{}: the decoder has '{}', which the file does not have; take the model's options from the file",
                   model_.path, parameter->spec.name);
      }
    }
  }

 private:
  const Llama2cModel& model_;
  ParameterStore& store_;
  std::set<std::string> filled_;
};

}  // namespace

Llama2cModel open_llama2c(const std::string& path) {
  Llama2cModel model;
  model.path = path;
  model.file = MappedFile(path);
  read_header(model);
  const int64_t D = model.width, F = model.feed_forward_width, L = model.layers, V = model.vocabulary;
  const int64_t K = model.head_width(), H = model.heads, G = model.key_value_heads;
  TensorReader reader(model);
  model.embedding = reader.take({V, D});
  model.attention_norm = reader.take({L, D});
  model.query = reader.take({L, H * K, D});
  model.key = reader.take({L, G * K, D});
  model.value = reader.take({L, G * K, D});
  model.attention_out = reader.take({L, D, H * K});
  model.feed_forward_norm = reader.take({L, D});
  model.gate = reader.take({L, F, D});
  model.down = reader.take({L, D, F});
  model.up = reader.take({L, F, D});
  model.final_norm = reader.take({D});
  reader.take({2, model.context, K / 2});  // cosines and sines of the rotary positions, which brisk computes itself
  model.head = model.tied ? model.embedding : reader.take({V, D});
  if (reader.bytes() != model.file.size()) {
    user_error(
        "{}: found {} bytes, but a llama2.c model of dim {}, hidden_dim {}, {} layers, {} heads ({} key/value), {}{} "
        "entries and context {} has {:.0f}; fetch the file again",
        path, model.file.size(), D, F, L, H, G, model.tied ? "" : "twice ", V, model.context,
        static_cast<double>(reader.bytes()));
  }
  return model;
}

ModelOptions model_options(const Llama2cModel& model) {
  ModelOptions options;
  options.d_model = model.width;
  options.num_layers = model.layers;
  options.num_heads = model.heads;
  options.num_kv_heads = model.key_value_heads;
  options.d_ff = model.feed_forward_width;
  options.vocab_size = model.vocabulary;
  options.norm = "rmsnorm";
  options.activation = "swiglu";
  options.positions = "rotary";
  options.tie_embeddings = model.tied;
  options.bias = false;
  options.dropout = 0;
  options.norm_epsilon = 1e-5;
  options.rope_theta = 10000;
  return options;
}

namespace {

// By the names that llama2.c's code has for them.
void check_finite(const Llama2cModel& model) {
  std::vector<SafetensorsEntry> tensors;
  for (const auto& [name, numbers] : {std::pair("token_embedding_table", model.embedding),
                                      {"rms_att_weight", model.attention_norm},
                                      {"wq", model.query},
                                      {"wk", model.key},
                                      {"wv", model.value},
                                      {"wo", model.attention_out},
                                      {"rms_ffn_weight", model.feed_forward_norm},
                                      {"w1", model.gate},
                                      {"w2", model.down},
                                      {"w3", model.up},
                                      {"rms_final_weight", model.final_norm},
                                      {"wcls", model.head}}) {
    tensors.push_back({name, SafetensorsType::f32, {}, numbers.data(), static_cast<int64_t>(numbers.size_bytes())});
  }
  std::vector<const SafetensorsEntry*> all;
  for (const SafetensorsEntry& tensor : tensors) all.push_back(&tensor);
  brisk::check_finite(model.path, all);
}

}  // namespace

void load_into(const Llama2cModel& model, ParameterStore& store, NonFinite nonfinite) {
  if (nonfinite == NonFinite::refuse) check_finite(model);
  const int64_t D = model.width, F = model.feed_forward_width, V = model.vocabulary;
  const int64_t Q = model.heads * model.head_width(), KV = model.key_value_heads * model.head_width();
  ParameterFiller filler(model, store);
  filler.fill("embedding.weight", V, D, {model.embedding});
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const auto of_layer = [&](std::span<const float> all) {
      const size_t count = all.size() / static_cast<size_t>(model.layers);
      return all.subspan(static_cast<size_t>(layer) * count, count);
    };
    const std::string prefix = fmt::format("layers.{}.", layer);
    filler.fill(prefix + "attention_norm.gain", 1, D, {of_layer(model.attention_norm)});
    filler.fill(prefix + "qkv.weight", Q + 2 * KV, D,
                {of_layer(model.query), of_layer(model.key), of_layer(model.value)});
    filler.fill(prefix + "attention_out.weight", D, Q, {of_layer(model.attention_out)});
    filler.fill(prefix + "feed_forward_norm.gain", 1, D, {of_layer(model.feed_forward_norm)});
    filler.fill(prefix + "up.weight", 2 * F, D, {of_layer(model.gate), of_layer(model.up)});
    filler.fill(prefix + "down.weight", D, F, {of_layer(model.down)});
  }
  filler.fill("final_norm.gain", 1, D, {model.final_norm});
  if (!model.tied) filler.fill("head.weight", V, D, {model.head});
  filler.check_all_filled();
}

}  // namespace brisk
