// Encoder-decoders: the original transformer, Marian, BART, T5 and two BERTs by options (models/encoder_decoder.h); Hugging
// Face folders.
#include <fmt/format.h>

#include "base/files/files.h"
#include "hub/huggingface/encoder_decoder.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/text_decoder_options.h"
#include "job/job_task.h"
#include "models/encoder_decoder.h"

namespace brisk {

namespace {

class EncoderDecoderArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override { return plain_config(job.model); }

  ModelConfig inference_config(const Job& job, const std::function<bool(std::string_view)>& is_saved) const override {
    EncoderDecoderConfig config = plain_config(job.model);
    config.lone_pooler = is_saved("pooler.weight");
    return config;
  }

  std::string describe(const Job& job) const override {
    const ModelOptions& model = job.model;
    const EncoderDecoderConfig config = plain_config(model);
    return fmt::format("{}-norm {}, {}, {} positions, {}, dropout {:g}, of attention {:g}", model.norm_position,
                       model.norm, model.activation, model.positions,
                       config.share_embeddings && config.tie_head ? "one table of embeddings and outputs"
                       : config.share_embeddings                  ? "shared embeddings, untied output projection"
                       : config.tie_head                          ? "outputs tied to the target's embeddings"
                                                                  : "untied output projection",
                       config.dropout, config.attention_dropout);
  }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (!is_huggingface_encoder_decoder(path)) return std::nullopt;
    const auto folder = std::make_shared<HuggingFaceEncoderDecoder>(path);
    ModelSource source = foreign_source("Hugging Face folder", path, folder->model());
    source.job.task = "translate";
    source.tokenizer = [path] { return load_tokenizer(path); };
    if (is_directory(path + "/target")) source.target_tokenizer = [path] { return load_tokenizer(path + "/target"); };
    source.check = [folder](const ParameterStore& store) { folder->check(store); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) { folder->load_into(store, nonfinite); };
    source.config = plain_config(source.model);
    return source;
  }

  void check_huggingface(const ModelOptions& model) const override { encoder_decoder_config_for(model); }

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    ModelOptions resolved = model.job.model;
    resolve_encoder_decoder(resolved);
    write_huggingface_encoder_decoder(folder, resolved, model.store, *model.tokenizer, model.writes_with(), type,
                                      model.job.training.max_length);
    return class_of(encoder_decoder_config_for(resolved).shape);
  }

 private:
  static EncoderDecoderConfig plain_config(ModelOptions model) {
    resolve_encoder_decoder(model);
    EncoderDecoderConfig config;
    const TextDecoderConfig decoder = text_decoder_config(model);
    config.decoder = config.encoder = decoder.sizes;
    config.encoder.d_model = model.encoder_d_model;
    config.encoder.num_layers = model.encoder_layers;
    config.encoder.num_heads = model.encoder_heads;
    config.encoder.head_width = model.head_width > 0 ? model.head_width : model.encoder_d_model / model.encoder_heads;
    config.encoder.d_ff = model.encoder_d_ff;
    config.encoder.max_length = model.source_context;
    config.target_vocab_size = model.vocab_size;
    config.source_vocab_size =
        model.share_embeddings || model.source_vocab_size == 0 ? model.vocab_size : model.source_vocab_size;
    static_cast<StackOptions&>(config) = decoder.options;
    config.share_embeddings = model.share_embeddings;
    return config;
  }
};

}  // namespace

const Architecture& encoder_decoder_architecture() {
  static const EncoderDecoderArchitecture architecture;
  return architecture;
}

}  // namespace brisk
