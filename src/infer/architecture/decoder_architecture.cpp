// Decoders: GPT-2's shape and Llama's by options (models/decoder.h); Hugging Face folders, GGUF and llama2.c files.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "hub/formats/llama2c.h"
#include "hub/gguf/gguf_model.h"
#include "hub/huggingface/decoder.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/model_shape.h"
#include "infer/optimizer_options.h"
#include "models/decoder.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;

std::string tokenizer_next_to(const std::string& path) {
  std::string found;
  std::error_code error;
  // A folder that cannot be listed has no tokenizer to be found.
  for (fs::directory_iterator entry(fs::absolute(path).parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("tok") || !name.ends_with(".bin")) continue;
    if (!found.empty())
      user_error("{}: two tokenizers next to it ({} and {}): choose one with --tokenizer", path, found, name);
    found = entry->path().string();
  }
  if (found.empty()) user_error("{}: no tok*.bin next to it: name the tokenizer with --tokenizer FILE", path);
  return found;
}

class DecoderArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override {
    DecoderConfig config = plain_config(job.model);
    config.trained_layers = job.training.train_layers;
    config.lora_rank = job.training.lora_rank;
    config.lora_scale = adapter_scale(job.training);
    if (!job.training.lora_matrices.empty()) config.lora_matrices = job.training.lora_matrices;
    return config;
  }

  ModelConfig inference_config(const Job& job,
                               const std::function<bool(std::string_view)>& /*is_saved*/) const override {
    return plain_config(job.model);  // adapters are merged
  }

  std::string describe(const Job& job) const override {
    const ModelOptions& model = job.model;
    return fmt::format("{}, {}, {} positions, {}, dropout {:g}", model.norm, model.activation, model.positions,
                       model.tie_embeddings ? "tied embeddings" : "untied output projection", model.dropout);
  }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (is_gguf_file(path)) return from_gguf(path);
    if (!is_directory(path)) return from_llama2c(path);
    if (is_huggingface_folder(path)) return from_huggingface(path);
    return std::nullopt;
  }

  void check_huggingface(const ModelOptions& model) const override { huggingface_config_for(model); }

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    brisk::write_huggingface(folder, model.job.model, model.store, *model.tokenizer, type,
                             model.job.training.max_length);
    return "AutoModelForCausalLM";
  }

  void write_gguf(const TrainedModel& model, const std::string& path, GgufType type) const override {
    brisk::write_gguf(path, model.job.name, model.job.model, model.store, *model.tokenizer, type);
  }

 private:
  static DecoderConfig plain_config(const ModelOptions& model) {
    auto config = config_with_shape<DecoderConfig>(model);
    config.num_kv_heads = model.num_kv_heads;
    config.norm = model.norm == "rmsnorm" ? NormKind::rms : NormKind::layer;
    if (model.activation == "swiglu") config.feed_forward = DecoderConfig::FeedForward::swiglu;
    using Positions = DecoderConfig::Positions;
    config.positions = model.positions == "rotary" ? Positions::rotary
                       : model.positions == "none" ? Positions::none
                                                   : Positions::learned;
    config.rope_theta = model.rope_theta;
    config.bias = model.bias;
    config.tie_embeddings = model.tie_embeddings;
    return config;
  }

  ModelSource from_llama2c(const std::string& path) const {
    const auto file = std::make_shared<Llama2cModel>(open_llama2c(path));
    ModelOptions model = model_options(*file);
    model.context = file->context;
    ModelSource source = foreign_source("llama2.c file", path, model);
    source.tokenizer = [path] { return load_tokenizer(tokenizer_next_to(path)); };
    source.load_into = [file](ParameterStore& store, NonFinite nonfinite) {
      brisk::load_into(*file, store, nonfinite);
    };
    source.config = plain_config(model);
    return source;
  }

  ModelSource from_gguf(const std::string& path) const {
    const auto file = std::make_shared<GgufModel>(path);
    ModelSource source = foreign_source("GGUF file", path, file->options());
    source.tokenizer = [file] { return file->tokenizer(); };
    source.check = [file](const ParameterStore&) { file->check(); };
    source.load_into = [file](ParameterStore& store, NonFinite nonfinite) { file->load_into(store, nonfinite); };
    source.config = plain_config(source.model);
    return source;
  }

  ModelSource from_huggingface(const std::string& path) const {
    const auto folder = std::make_shared<HuggingFaceDecoder>(path);
    ModelSource source = foreign_source("Hugging Face folder", path, folder->config().model);
    source.tokenizer = [path] { return load_tokenizer(path); };
    source.check = [folder](const ParameterStore&) { folder->check(); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) { folder->load_into(store, nonfinite); };
    source.config = plain_config(source.model);
    return source;
  }
};

}  // namespace

const Architecture& decoder_architecture() {
  static const DecoderArchitecture architecture;
  return architecture;
}

}  // namespace brisk
