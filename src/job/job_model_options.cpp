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
  const Condition encoder = with_encoder(job, ""), decoder = with_decoder(job, ""), mu = with_type(job, "mu");
  const Condition pairs = with_encoder_decoder(job), t5 = with_type(job, "t5");
  std::vector<std::string> types, encoders, both;
  for (const ArchitectureTraits& architecture : all_architectures()) {
    std::vector<std::string>& kind = architecture.is_encoder           ? encoders
                                     : architecture.is_encoder_decoder ? both
                                                                       : types;
    kind.insert(kind.end(), architecture.types.begin(), architecture.types.end());
  }
  types.insert(types.end(), encoders.begin(), encoders.end());
  types.insert(types.end(), both.begin(), both.end());
  all.emplace_back(
         "model.type", model.type,
         fmt::format(
             "architecture of the model: a decoder, which continues text (`gpt2` is one with the defaults of "
             "this table, `llama` one with those of Llama, `mu` another network), an encoder ({}), or both, to "
             "read one text and write another ({}; `marian`, `bart` and `t5` are some with the defaults of those)",
             fmt::join(encoders, ", "), fmt::join(both, ", ")),
         OnResume::fixed)
      .one_of(types)
      .same_as("gpt2", "decoder")
      .same_as("gpt", "decoder")
      .same_as("llama", "decoder")
      .same_as("transformer", "decoder")
      .same_as("marian", "encoder_decoder")
      .same_as("bart", "encoder_decoder")
      .same_as("t5", "encoder_decoder")
      .same_as("seq2seq", "encoder_decoder")
      .default_with(with_encoder_task(job), "bert")
      .default_with(with_pairs_of_texts(job), "encoder_decoder")
      .default_with(with_texts_of_images(job), "vision_encoder_decoder")
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
      .must_with(
          with_type(job, "swin"),
          [&model] {
            const std::vector<int64_t>& heads = model.encoder_stage_heads;  // whose first this is, once they are known
            return model.num_heads == 0 || (!heads.empty() && model.num_heads == heads.front());
          },
          "encoder_stage_heads, a number for each stage")
      .also({"n_heads", "n_head", "num_attention_heads", "heads"})
      .smoke_test_rule([&model] {
        if (has_fixed_layers(model.type)) return;
        if (model.type == "swin") {  // stages have theirs
          model.num_heads = model.num_kv_heads = 0;
          return;
        }
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
        const bool has_vocabulary = !with_image_classifier(job).holds();
        if (has_vocabulary && job.data.tokenizer.empty())
          job.model.vocab_size = std::min<int64_t>(1000, job.model.vocab_size);
      })
      .everywhere();
  all.emplace_back(
         "model.norm", model.norm,
         "normalization layer: in a decoder before each block and at the end, in an encoder after each block, in an "
         "encoder-decoder as norm_position says",
         OnResume::fixed)
      .one_of({"layernorm", "rmsnorm"})
      .same_as("layer_norm", "layernorm")
      .same_as("rms_norm", "rmsnorm")
      .default_with(with_type(job, "llama"), "rmsnorm")
      .default_with(t5, "rmsnorm")
      .also({"norm_type", "normalization"})
      .must_with(
          encoder, [&model] { return model.norm == "layernorm"; }, "layernorm")
      .must_with(
          mu, [&model] { return model.norm == "layernorm"; }, "layernorm")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.activation", model.activation,
                   "activation function of the feed-forward blocks; gelu is the tanh approximation, gelu_erf the exact "
                   "function; of swiglu (silu) and geglu (gelu) one half of the layer multiplies the other",
                   OnResume::fixed)
      .one_of({"gelu", "gelu_erf", "swiglu", "relu", "swish", "geglu"})
      .same_as("gelu_new", "gelu")
      .same_as("gelu_tanh", "gelu")
      .same_as("gelu_pytorch_tanh", "gelu")
      .same_as("silu", "swiglu")
      .same_as("gated-gelu", "geglu")
      .default_with(with_type(job, "llama"), "swiglu")
      .default_with(with_encoder_task(job), "gelu_erf")
      .default_with(pairs, "relu")
      .default_with(with_type(job, "marian"), "swish")
      .default_with(with_type(job, "bart"), "gelu_erf")
      .default_with(t5, "relu")
      .default_with(mu, "gelu_erf")
      .also({"activation_function", "hidden_act"})
      .must_with(
          encoder, [&model] { return model.activation.starts_with("gelu") || model.activation == "relu"; },
          "gelu_erf, gelu or relu")
      .must_with(
          decoder, [&model] { return model.activation != "swish" && model.activation != "geglu"; },
          "gelu, gelu_erf, relu or swiglu")
      .must_with(
          mu, [&model] { return model.activation == "gelu_erf"; }, "gelu_erf")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("model.positions", model.positions,
                   "position encoding: a learned table, rotary embeddings (RoPE), or none; of an encoder-decoder also "
                   "sinusoids (all sines before the cosines, or interleaved), or a learned bias of attention for each "
                   "distance (T5)",
                   OnResume::fixed)
      .one_of({"learned", "rotary", "none", "sinusoidal", "interleaved_sinusoidal", "relative"})
      .same_as("absolute", "learned")
      .same_as("rope", "rotary")
      .default_with(with_type(job, "llama"), "rotary")
      .default_with(pairs, "sinusoidal")
      .default_with(with_type(job, "marian"), "sinusoidal")
      .default_with(t5, "relative")
      .also({"position_embedding_type", "position_embedding", "pos_encoding", "positional_encoding"})
      .must_with(
          encoder, [&model] { return model.positions == "learned"; }, "learned positions")
      .must_with(
          decoder,
          [&model] { return model.positions == "learned" || model.positions == "rotary" || model.positions == "none"; },
          "learned, rotary or none")
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
      .default_with(t5, false)
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
      .default_with(with_encoder_decoder_task(job), 0.1)
      .default_with(with_image_classifier(job), 0.0)
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
      .default_with(t5, 1e-6)
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
      .only_with({"an encoder or an encoder-decoder",
                  [&model] { return model.is_encoder() || model.is_encoder_decoder(); },
                  [&model] { return fmt::format("to model.type {} (a decoder has model.dropout alone)", model.type); }})
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
      .automatic(-1, "bert 2, distilbert 0, roberta 1, encoder_decoder 0")
      .only_with({"an encoder or an encoder-decoder",
                  [&model] { return model.is_encoder() || model.is_encoder_decoder(); },
                  [&model] { return fmt::format("to model.type {} (a decoder has none)", model.type); }})
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

void declare_encoder_decoder(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  const Condition pairs = with_encoder_decoder(job);
  const Condition marian = with_type(job, "marian"), bart = with_type(job, "bart"), t5 = with_type(job, "t5");
  const auto size_of_encoder = [&](const std::string& name, int64_t& field, const std::string& help, int64_t most,
                                   const std::string& rule) -> Option& {
    return all.emplace_back("model." + name, field, help, OnResume::fixed)
        .at_least(1)
        .at_most(static_cast<double>(most))
        .automatic(0, rule)
        .only_with(pairs)
        .smoke_test_value(0);
  };
  size_of_encoder(
      "encoder_d_model", model.encoder_d_model,
      "width of the encoder; d_model is the decoder's. Where they differ, a matrix leads from one to the other", 65536,
      "d_model");
  size_of_encoder("encoder_layers", model.encoder_layers, "number of the encoder's layers; num_layers is the decoder's",
                  1000, "num_layers");
  size_of_encoder("encoder_heads", model.encoder_heads, "number of attention heads of the encoder", 4096, "num_heads")
      .also({"encoder_attention_heads"});
  size_of_encoder("encoder_d_ff", model.encoder_d_ff,
                  "width of the hidden layer inside the encoder's feed-forward blocks", 1048576, "d_ff")
      .also({"encoder_ffn_dim"});
  size_of_encoder("head_width", model.head_width, "width of each attention head", 4096, "d_model / num_heads")
      .also({"d_kv", "head_dim"});
  size_of_encoder("source_context", model.source_context, "longest source text the model can read", 16777216, "context")
      .in("tokens");
  all.emplace_back("model.source_vocab_size", model.source_vocab_size,
                   "number of tokens in the vocabulary of the source, where it is not that of the target",
                   OnResume::may_change)
      .decided_by_data()
      .at_least(1)
      .at_most(16777216)
      .automatic(0, "vocab_size")
      .only_with(pairs)
      .smoke_test_value(0);
  all.emplace_back("model.share_embeddings", model.share_embeddings,
                   "use one table of token embeddings for source and target, which needs one vocabulary for both",
                   OnResume::fixed)
      .default_with({"separate tokenizers",
                     [&job] { return job.data.separate_tokenizers || !job.data.target_tokenizer.empty(); }},
                    false)
      .only_with(pairs)
      .also({"share_encoder_decoder_embeddings"})
      .same_in_smoke_test();
  all.emplace_back("model.norm_position", model.norm_position,
                   "normalize before each block and at the end (pre), or after each block (post), which needs a longer "
                   "warm-up",
                   OnResume::fixed)
      .one_of({"pre", "post"})
      .default_with(marian, "post")
      .default_with(bart, "post")
      .only_with(pairs)
      .same_in_smoke_test();
  all.emplace_back("model.embedding_norm", model.embedding_norm, "normalize the embeddings", OnResume::fixed)
      .default_with(bart, true)
      .only_with(pairs)
      .also({"normalize_embedding"})
      .same_in_smoke_test();
  all.emplace_back("model.scale_embeddings", model.scale_embeddings,
                   "multiply token embeddings by the square root of d_model", OnResume::fixed)
      .default_with(bart, false)
      .default_with(t5, false)
      .only_with(pairs)
      .also({"scale_embedding"})
      .same_in_smoke_test();
  all.emplace_back("model.scale_attention", model.scale_attention,
                   "divide attention scores by the square root of head_width; false: they are as they come (T5)",
                   OnResume::fixed)
      .default_with(t5, false)
      .only_with(pairs)
      .same_in_smoke_test();
  all.emplace_back("model.scale_outputs", model.scale_outputs,
                   "divide what the output projection reads by the square root of d_model (T5)", OnResume::fixed)
      .default_with(t5, true)
      .only_with(pairs)
      .same_in_smoke_test();
  all.emplace_back("model.position_offset", model.position_offset,
                   "unused rows at the beginning of the table of positions", OnResume::fixed)
      .at_least(0)
      .at_most(1024)
      .default_with(bart, int64_t{2})
      .only_with(pairs)
      .used_with({"a table of positions",
                  [&model] { return model.positions == "learned" || model.positions.ends_with("sinusoidal"); }})
      .same_in_smoke_test();
  const Condition relative = {"positions relative", [&model] { return model.positions == "relative"; }};
  all.emplace_back(
         "model.relative_buckets", model.relative_buckets,
         "number of classes of distances that have a bias of their own; half of them of distances that have one "
         "each",
         OnResume::fixed)
      .at_least(4)
      .at_most(256)
      .only_with(pairs)
      .used_with(relative)
      .also({"relative_attention_num_buckets"})
      .same_in_smoke_test();
  all.emplace_back("model.relative_distance", model.relative_distance,
                   "distance from which on all tokens have the same bias", OnResume::fixed)
      .at_least(2)
      .at_most(1048576)
      .in("tokens")
      .only_with(pairs)
      .used_with(relative)
      .also({"relative_attention_max_distance"})
      .same_in_smoke_test();
  all.emplace_back(
         "model.output_bias", model.output_bias,
         "bias of the output projection: none, one that is kept as it is in training (BART, Marian), or trained",
         OnResume::fixed)
      .one_of({"none", "fixed", "trained"})
      .only_with(pairs)
      .same_in_smoke_test();
  all.emplace_back("model.output_transform", model.output_transform,
                   "a matrix, the activation and a normalization before the output projection (BERT)", OnResume::fixed)
      .only_with(pairs)
      .same_in_smoke_test();
  all.emplace_back("model.first_token", model.first_token, "id of the token that the decoder reads before each target",
                   OnResume::fixed)
      .at_least(0)
      .at_most(16777215)
      .automatic(-1, "the target tokenizer's start of a text, or its padding, or its end")
      .only_with(pairs)
      .also({"decoder_start_token_id"})
      .smoke_test_value(-1);
  all.emplace_back(
         "model.activation_dropout", model.activation_dropout,
         "fraction of the hidden numbers inside each feed-forward block set to zero at random in training; none "
         "where it is gated",
         OnResume::fixed)
      .with_source(WithSource::suggests)
      .at_least(0)
      .below(1)
      .only_with(pairs)
      .used_with({"an activation that is not gated",
                  [&model] { return model.activation != "swiglu" && model.activation != "geglu"; }})
      .same_in_smoke_test();
  all.emplace_back("model.final_dropout", model.final_dropout,
                   "fraction of what the last norm of the encoder, and of the decoder, makes set to zero at random in "
                   "training, as T5",
                   OnResume::fixed)
      .with_source(WithSource::suggests)
      .at_least(0)
      .below(1)
      .only_with(pairs)
      .used_with({"norm_position pre", [&model] { return model.norm_position == "pre"; }})
      .same_in_smoke_test();
}

}  // namespace

void declare_model_options(Job& job, std::vector<Option>& all) {
  declare_shape(job, all);
  declare_encoder(job, all);
  declare_encoder_decoder(job, all);
}

}  // namespace brisk
