// The options of a job's model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

void declare_shape(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  const Condition encoder = with_encoder(job, ""), mu = with_type(job, "mu");
  std::vector<std::string> types, encoders;
  for (const ArchitectureTraits& architecture : all_architectures()) {
    std::vector<std::string>& kind = architecture.is_encoder ? encoders : types;
    kind.insert(kind.end(), architecture.types.begin(), architecture.types.end());
  }
  types.insert(types.end(), encoders.begin(), encoders.end());
  all.emplace_back(
         "model.type", model.type,
         fmt::format("architecture of the model: a decoder, which continues text (`gpt2` is one with the defaults of "
                     "this table, `llama` one with those of Llama, `mu` another network), or an encoder ({})",
                     fmt::join(encoders, ", ")),
         OnResume::fixed)
      .one_of(types)
      .same_as("gpt2", "decoder")
      .same_as("gpt", "decoder")
      .same_as("llama", "decoder")
      .same_as("transformer", "decoder")
      .default_with(with_encoder_task(job), "bert")
      .also({"model_type", "architecture"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.d_model", model.d_model, "width of the model: size of each token's vector", OnResume::fixed)
      .at_least(1)
      .at_most(65536)
      .default_with(mu, 64)
      .must_with(
          mu, [&model] { return model.d_model == 64; }, "64, sixteen blocks of 2x2")
      .also({"hidden_size", "n_embd", "dim", "hidden_dim", "embedding_dim", "embed_dim", "width"})
      .smoke_test_rule([&model] { model.d_model = std::clamp<int64_t>(model.d_model / 4 * 4, 4, 64); })
      .everywhere();
  all.emplace_back("model.num_layers", model.num_layers, "number of transformer layers", OnResume::fixed)
      .with_source(WithSource::limits)
      .at_least(1)
      .at_most(1000)
      .default_with(mu, 6)
      .also({"n_layers", "n_layer", "num_hidden_layers", "layers", "depth"})
      .smoke_test_at_most(2)
      .everywhere();
  all.emplace_back("model.num_heads", model.num_heads, "number of attention heads in each layer", OnResume::fixed)
      .at_least(1)
      .at_most(4096)
      .automatic(0, "d_model / 64, or the nearest number that divides d_model")
      .default_with(mu, 8)
      .must_with(
          mu, [&model] { return model.num_heads == 8; }, "8 over all blocks, and 2 in each")
      .also({"n_heads", "n_head", "num_attention_heads", "heads"})
      .smoke_test_rule([&model] {
        if (has_fixed_layers(model.type)) return;
        model.num_kv_heads = model.num_kv_heads < model.num_heads ? 1 : 2;
        model.num_heads = 2;
      })
      .everywhere();
  all.emplace_back("model.num_kv_heads", model.num_kv_heads,
                   "number of key/value heads; fewer than num_heads is grouped-query attention", OnResume::fixed)
      .at_least(1)
      .at_most(4096)
      .automatic(0, "num_heads")
      .must_with(
          mu, [&model] { return model.num_kv_heads == 0 || model.num_kv_heads == 8; }, "8")
      .also({"n_kv_heads", "num_key_value_heads"})
      .everywhere()
      .same_in_smoke_test();  // num_heads changes both
  all.emplace_back("model.d_ff", model.d_ff, "width of the hidden layer inside each feed-forward block",
                   OnResume::fixed)
      .at_least(1)
      .at_most(1048576)
      .automatic(0, "4 d_model; with swiglu 8/3 d_model, rounded up to a multiple of 64")
      .must_with(
          mu, [&model] { return model.d_ff == 0 || model.d_ff == 256; }, "256")
      .also({"intermediate_size", "ffn_dim", "n_inner", "d_hidden", "ffn_hidden_size", "feed_forward_size",
             "dim_feedforward"})
      .smoke_test_value(0)
      .everywhere();
  all.emplace_back("model.vocab_size", model.vocab_size,
                   "number of tokens in the vocabulary; reduced if the training text is too small",
                   OnResume::may_change)
      .decided_by_data()
      .at_least(1)
      .at_most(16777216)
      .default_with(mu, 50000)
      .also({"n_vocab", "vocabulary_size", "data.vocab_size"})  // the tokenizer is the run's own
      .smoke_test_rule([&job] {
        if (job.data.tokenizer.empty()) job.model.vocab_size = std::min<int64_t>(1000, job.model.vocab_size);
      })
      .everywhere();
  all.emplace_back("model.norm", model.norm,
                   "normalization layer: in a decoder before each block and at the end, in an encoder after each block",
                   OnResume::fixed)
      .one_of({"layernorm", "rmsnorm"})
      .same_as("layer_norm", "layernorm")
      .same_as("rms_norm", "rmsnorm")
      .default_with(with_type(job, "llama"), "rmsnorm")
      .also({"norm_type", "normalization"})
      .must_with(
          encoder, [&model] { return model.norm == "layernorm"; }, "layernorm")
      .must_with(
          mu, [&model] { return model.norm == "layernorm"; }, "layernorm")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.activation", model.activation,
                   "activation function of the feed-forward blocks; gelu is the tanh approximation, gelu_erf the exact "
                   "function",
                   OnResume::fixed)
      .one_of({"gelu", "gelu_erf", "swiglu", "relu"})
      .same_as("gelu_new", "gelu")
      .same_as("gelu_tanh", "gelu")
      .same_as("gelu_pytorch_tanh", "gelu")
      .same_as("silu", "swiglu")
      .default_with(with_type(job, "llama"), "swiglu")
      .default_with(with_encoder_task(job), "gelu_erf")
      .default_with(mu, "gelu_erf")
      .also({"activation_function", "hidden_act"})
      .must_with(
          encoder, [&model] { return model.activation != "swiglu"; }, "gelu_erf, gelu or relu")
      .must_with(
          mu, [&model] { return model.activation == "gelu_erf"; }, "gelu_erf")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.positions", model.positions,
                   "position encoding: a learned table, rotary embeddings (RoPE), or none", OnResume::fixed)
      .one_of({"learned", "rotary", "none"})
      .same_as("absolute", "learned")
      .same_as("rope", "rotary")
      .default_with(with_type(job, "llama"), "rotary")
      .also({"position_embedding_type", "position_embedding", "pos_encoding", "positional_encoding"})
      .must_with(
          encoder, [&model] { return model.positions == "learned"; }, "learned positions")
      .must_with(
          mu, [&model] { return model.positions == "learned"; }, "learned positions")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.tie_embeddings", model.tie_embeddings,
                   "use the token embedding as the output projection too, one matrix for both", OnResume::fixed)
      .default_with(with_type(job, "llama"), false)
      .default_with(mu, false)
      .also({"tie_word_embeddings", "tie_weights", "weight_tying"})
      .must_with(
          encoder, [&model] { return model.tie_embeddings; }, "the embedding as its output projection")
      .must_with(
          mu, [&model] { return !model.tie_embeddings; }, "an output projection of its own")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.bias", model.bias, "add biases in linear layers and layernorm", OnResume::fixed)
      .default_with({"norm rmsnorm", [&model] { return model.norm == "rmsnorm"; }}, false)
      .default_with(with_type(job, "llama"), false)
      .also({"use_bias"})
      .must_with(
          encoder, [&model] { return model.bias; }, "biases")
      .must_with(
          mu, [&model] { return model.bias; }, "biases")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.dropout", model.dropout, "fraction of activations set to zero at random in training",
                   OnResume::fixed)
      .with_source(WithSource::suggests)
      .at_least(0)
      .below(1)
      .default_with(with_encoder_task(job), 0.1)
      .default_with(mu, 0.1)
      .also({"dropout_rate", "hidden_dropout_prob", "resid_pdrop", "training.dropout"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.norm_epsilon", model.norm_epsilon,
                   "small constant added to the variance in normalization, against division by zero", OnResume::fixed)
      .above(0)
      .at_most(1)
      .default_with(with_encoder_task(job), 1e-12)
      .default_with(with_type(job, "roberta"), 1e-5)
      .also({"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps", "norm_eps"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.rope_theta", model.rope_theta, "base of the frequencies of rotary position embeddings",
                   OnResume::fixed)
      .above(1)
      .used_with({"positions rotary", [&model] { return model.positions == "rotary"; }})
      .also({"rotary_base", "rope_base"})
      .same_in_smoke_test();
  all.emplace_back(
         "model.reference", model.reference,
         "MU as it was first written, with its defects, to compare with: it sees the tokens that it predicts, so its "
         "perplexity is not a language model's",
         OnResume::fixed)
      .only_with(mu)
      .same_in_smoke_test();
  all.emplace_back("model.context", model.context,
                   "longest text the model can read; with learned positions the size of their table", OnResume::fixed)
      .at_least(1)
      .at_most(16777216)
      .automatic(0, "training.max_length")
      .in("tokens")
      .smoke_test_value(0)
      .everywhere();
  all.emplace_back("model.from", model.from,
                   "trained model to start from: a run, a checkpoint, a Hugging Face folder, a .gguf or llama2.c file; "
                   "the other keys of model and the tokenizer come from it",
                   OnResume::fixed)
      .with_source(WithSource::leaves)
      .automatic("new weights")
      .also({"checkpoint", "init_from", "pretrained", "model_name_or_path", "training.init_from"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.allow_nonfinite", model.allow_nonfinite,
                   "start even from a model with weights that are NaN or infinite, which is refused otherwise",
                   OnResume::may_change)
      .with_source(WithSource::leaves)
      .used_with({"model.from or training.teacher",
                  [&job] { return !job.model.from.empty() || !job.training.teacher.empty(); }})
      .same_in_smoke_test();
}

void declare_encoder(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  all.emplace_back("model.attention_dropout", model.attention_dropout,
                   "fraction of attention weights set to zero at random in training", OnResume::fixed)
      .with_source(WithSource::suggests)
      .at_least(0)
      .below(1)
      .automatic(-1, "dropout")
      .only_with(with_encoder(job, "a decoder has model.dropout alone"))
      .also({"attention_probs_dropout_prob"})
      .same_in_smoke_test();
  all.emplace_back("model.classifier_dropout", model.classifier_dropout,
                   "fraction of the classifier head's inputs set to zero at random in training", OnResume::fixed)
      .with_source(WithSource::suggests)
      .at_least(0)
      .below(1)
      .automatic(-1, "dropout")
      .default_with(with_type(job, "distilbert"), 0.2)
      .only_with(with_encoder(job, "it has no classes"))
      .used_with(with_labels(job))
      .also({"seq_classif_dropout"})
      .same_in_smoke_test();
  all.emplace_back("model.token_types", model.token_types,
                   "number of token types (segments): 2 tell the first text of a pair from the second", OnResume::fixed)
      .at_least(0)
      .at_most(16)
      .automatic(-1, "bert 2, distilbert 0, roberta 1")
      .only_with(with_encoder(job, "a decoder has none"))
      .also({"type_vocab_size"})
      .same_in_smoke_test();
  all.emplace_back("model.num_labels", model.num_labels, "number of classes", OnResume::fixed)
      .with_source(WithSource::leaves)
      .decided_by_data()
      .at_least(2)
      .at_most(1048576)
      .automatic(0, "as many as the training data has")
      .only_with(with_labels(job))
      .also({"num_classes", "n_classes", "data.num_labels"})
      .same_in_smoke_test();
}

}  // namespace

void declare_model_options(Job& job, std::vector<Option>& all) {
  declare_shape(job, all);
  declare_encoder(job, all);
}

}  // namespace brisk
