#include "models/transformer_stack.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "models/model_config.h"

namespace brisk {

namespace {

double square_root(int64_t width) { return std::sqrt(static_cast<double>(width)); }

}  // namespace

Activation StackOptions::activation() const {
  switch (feed_forward) {
    case FeedForward::relu: return Activation::relu;
    case FeedForward::gelu_tanh:
    case FeedForward::gated_gelu: return Activation::gelu_tanh;
    case FeedForward::gelu_erf: return Activation::gelu_erf;
    case FeedForward::silu:
    case FeedForward::gated_silu: return Activation::silu;
  }
  return Activation::none;
}

// Both name every field: a new one does not compile until it is decided on here. Dropout does not change the function.
uint64_t fingerprint_of_stack(const StackSizes& sizes) {
  const auto& [D, L, heads, K, F, longest, type_rows] = sizes;
  return fingerprint_of("stack", D, L, heads, K, F, longest, type_rows);
}

uint64_t fingerprint_of_stack(const StackOptions& options) {
  const auto& [pre, first, norm_kind, epsilon, feed_forward, position_kind, offset, buckets, distance, theta,
               embeddings_scaled, attention_scaled, head_scaled, biased, tied, of_logits, transform, begins_with,
               dropped, attention_dropped, activation_dropped, last_dropped] = options;
  return fingerprint_of("options", pre, first, norm_kind, epsilon, feed_forward, position_kind, offset, buckets,
                        distance, theta, embeddings_scaled, attention_scaled, head_scaled, biased, tied,
                        of_logits != StackOptions::HeadBias::none, transform, begins_with);
}

Parameter* StackDeclaration::table(const std::string& name, int64_t rows, int64_t D, bool multiplies) {
  return store_.add({.name = prefix_ + name + ".weight",
                     .rows = rows,
                     .cols = D,
                     .decays = true,
                     .multiplies = multiplies,
                     .initial = {Initial::Kind::normal, options_.scale_embeddings ? 1 / square_root(D) : 0.02},
                     .component = name});
}

StackDeclaration::Matrix StackDeclaration::matrix(const std::string& name, int64_t rows, int64_t cols, double deviation,
                                                  std::vector<int64_t> parts) {
  Parameter* weight = store_.add({.name = prefix_ + name + ".weight",
                                  .rows = rows,
                                  .cols = cols,
                                  .decays = true,
                                  .multiplies = true,
                                  .initial = {Initial::Kind::normal, deviation},
                                  .parts = std::move(parts),
                                  .hidden = true,
                                  .component = component_});
  return {weight, options_.bias ? vector(name + ".bias", rows) : nullptr};
}

StackDeclaration::Norm StackDeclaration::norm(const std::string& name, int64_t D) {
  const std::string before = std::exchange(component_, "norms");
  Norm result{vector(name + ".gain", D, {Initial::Kind::ones}), nullptr};
  if (options_.norm == NormKind::layer && options_.bias) result.bias = vector(name + ".bias", D);
  component_ = before;
  return result;
}

Parameter* StackDeclaration::vector(const std::string& name, int64_t cols, Initial initial, bool trained) {
  return store_.add(
      {.name = prefix_ + name, .cols = cols, .initial = initial, .trained = trained, .component = component_});
}

Parameter* StackDeclaration::types(int64_t rows, int64_t D) {
  return store_.add({.name = prefix_ + "types.weight",
                     .rows = rows,
                     .cols = D,
                     .decays = true,
                     .initial = {Initial::Kind::normal, 0.02},
                     .component = "token types"});
}

Parameter* StackDeclaration::relative(int64_t heads) {
  return store_.add({.name = prefix_ + "relative.weight",
                     .rows = options_.relative_buckets,
                     .cols = heads,
                     .initial = {Initial::Kind::normal, 0.02},
                     .component = component_});
}

Parameter* StackDeclaration::positions(int64_t max_length, int64_t D) {
  using Positions = StackOptions::Positions;
  const bool learned = options_.positions == Positions::learned;
  const bool interleaved = options_.positions == Positions::interleaved_sinusoidal;
  if (!learned && !interleaved && options_.positions != Positions::sinusoidal) return nullptr;
  return store_.add({.name = prefix_ + "positions.weight",
                     .rows = options_.position_offset + max_length,
                     .cols = D,
                     .decays = learned,
                     .initial = {learned       ? Initial::Kind::normal
                                 : interleaved ? Initial::Kind::interleaved_sinusoids
                                               : Initial::Kind::sinusoids,
                                 learned ? 0.02 : 0},
                     .trained = learned,
                     .component = component_});
}

TransformerStack::TransformerStack(const StackOptions& options, const StackSizes& sizes, ParameterStore& store,
                                   const std::string& name, const Reads& reads)
    : options_(options),
      sizes_(sizes),
      table_(reads.table),
      reads_source_(reads.source_width > 0),
      causal_(reads.causal) {
  StackDeclaration declare(options, store);
  const int64_t D = sizes.d_model, F = sizes.d_ff, inner = inner_width();
  const double sums =
      static_cast<double>((reads_source_ ? 3 : 2) * sizes.num_layers);  // what its layers add to the stream
  // As in the decoder alone (models/decoder.cpp): what writes to a stream without a norm of its own starts smaller.
  const double shrunk = options.pre_norm ? 0.02 / std::sqrt(sums) : 0.02;
  declare.begin(name + ".", name + " positions");
  positions_ = declare.positions(sizes.max_length, D);
  if (sizes.types > 0) types_ = declare.types(sizes.types, D);
  if (options.positions == StackOptions::Positions::relative) relative_ = declare.relative(sizes.num_heads);
  if (options.embedding_norm) embedding_norm_ = declare.norm("embedding_norm", D);
  for (int64_t l = 0; l < sizes.num_layers; ++l) {
    Layer layer;
    declare.begin(fmt::format("{}.layers.{}.", name, l), name + " attention projections");
    layer.qkv = declare.matrix("qkv", 3 * inner, D, 0.02, {inner, inner, inner});
    layer.attention_out = declare.matrix("attention_out", D, inner, shrunk);
    layer.attention_norm = declare.norm("attention_norm", D);
    if (reads_source_) {
      declare.count_in(causal_ ? "cross-attention projections" : name + " cross-attention projections");
      layer.cross_q = declare.matrix("cross_q", inner, D);
      layer.cross_kv = declare.matrix("cross_kv", 2 * inner, reads.source_width, 0.02, {inner, inner});
      layer.cross_out = declare.matrix("cross_out", D, inner, shrunk);
      layer.cross_norm = declare.norm("cross_norm", D);
    }
    declare.count_in(name + " feed-forward");
    const bool gated = options.is_gated();
    layer.up =
        declare.matrix("up", gated ? 2 * F : F, D, 0.02, gated ? std::vector<int64_t>{F, F} : std::vector<int64_t>{});
    layer.down = declare.matrix("down", D, F, shrunk);
    layer.feed_forward_norm = declare.norm("feed_forward_norm", D);
    layers_.push_back(layer);
  }
  declare.begin(name + ".", "norms");
  if (options.pre_norm) final_norm_ = declare.norm("final_norm", D);
}

AttentionShape TransformerStack::attention_shape(bool causal) const {
  const double scale = options_.scale_attention ? 1 / square_root(sizes_.head_width) : 1;
  return {sizes_.num_heads, sizes_.num_heads, sizes_.head_width, static_cast<float>(scale), causal};
}

Value TransformerStack::normed(Tape& tape, Value x, const Norm& by) const {
  return norm(tape, x, options_.norm, by.gain, by.bias, options_.norm_epsilon);
}

Value TransformerStack::entering(Tape& tape, Value h, const Norm& norm) const {
  return options_.pre_norm ? normed(tape, h, norm) : h;
}

Value TransformerStack::leaving(Tape& tape, Value h, Value x, const Matrix& last, const Norm& norm) const {
  const Value sum = linear(tape, x, last.weight, {.bias = last.bias, .dropout = options_.dropout, .residual = h});
  return options_.pre_norm ? sum : normed(tape, sum, norm);
}

Value TransformerStack::embed(Tape& tape, int row_set) const {
  const bool normed_here = embedding_norm_.gain != nullptr;
  const Value h = embedding(tape, row_set, table_,
                            {.positions = positions_,
                             .position_offset = options_.position_offset,
                             .types = types_,
                             .scale = options_.scale_embeddings ? square_root(sizes_.d_model) : 1,
                             .dropout = normed_here ? 0 : options_.dropout});
  if (!normed_here) return h;
  return norm(tape, h, options_.norm, embedding_norm_.gain, embedding_norm_.bias, options_.norm_epsilon,
              options_.dropout);
}

Value TransformerStack::add_self_attention(Tape& tape, const Layer& layer, Value h, Value bias) const {
  const int64_t K = sizes_.head_width;
  Value qkv = linear(tape, entering(tape, h, layer.attention_norm), layer.qkv.weight, {.bias = layer.qkv.bias});
  if (options_.positions == StackOptions::Positions::rotary) {
    qkv = rotary(tape, qkv, 2 * sizes_.num_heads * K, K, options_.rope_theta);
  }
  const Value mixed = self_attention(tape, qkv, attention_shape(causal_), options_.attention_dropout, bias);
  return leaving(tape, h, mixed, layer.attention_out, layer.attention_norm);
}

Value TransformerStack::add_cross_attention(Tape& tape, size_t number, Value h, const Source& source) const {
  const Layer& layer = layers_[number];
  const AttentionShape shape = attention_shape(false);
  const Value q = linear(tape, entering(tape, h, layer.cross_norm), layer.cross_q.weight, {.bias = layer.cross_q.bias});
  Value mixed;
  if (source.rows) {
    const Value kv = linear(tape, source.rows, layer.cross_kv.weight, {.bias = layer.cross_kv.bias});
    mixed = cross_attention(tape, q, kv, shape, options_.attention_dropout);
  } else {
    mixed = memory_attention(tape, q, shape, static_cast<int64_t>(number), source.longest);
  }
  return leaving(tape, h, mixed, layer.cross_out, layer.cross_norm);
}

Value TransformerStack::add_feed_forward(Tape& tape, const Layer& layer, Value h) const {
  const Value x = entering(tape, h, layer.feed_forward_norm);
  const Activation activation = options_.activation();
  const Value inner =
      options_.is_gated()
          ? gated(tape, linear(tape, x, layer.up.weight, {.bias = layer.up.bias}), activation)
          : linear(tape, x, layer.up.weight,
                   {.bias = layer.up.bias, .activation = activation, .dropout = options_.activation_dropout});
  return leaving(tape, h, inner, layer.down, layer.feed_forward_norm);
}

Value TransformerStack::output(Tape& tape, int row_set, const Source& source) const {
  BRISK_CHECK(reads_source_ || !source.rows, "a source for a stack without cross-attention");
  const bool whole = !reads_source_ || source.rows;  // all rows of a text at once, and not the next ones of a cache
  // The bias of every distance, of which all layers read.
  Value bias;
  if (relative_ != nullptr) {
    const int64_t most_keys = whole ? tape.rows(row_set).longest : sizes_.max_length;
    bias = relative_bias(tape, relative_, {options_.relative_distance, causal_}, most_keys);
  }
  Value h = embed(tape, row_set);
  for (size_t l = 0; l < layers_.size(); ++l) {
    h = add_self_attention(tape, layers_[l], h, bias);
    if (reads_source_) h = add_cross_attention(tape, l, h, source);
    h = add_feed_forward(tape, layers_[l], h);
    tape.end_layer();
  }
  if (final_norm_.gain == nullptr) return h;
  return norm(tape, h, options_.norm, final_norm_.gain, final_norm_.bias, options_.norm_epsilon,
              options_.final_dropout);
}

Value TransformerStack::memory(Tape& tape, Value source) const {
  std::vector<Value> parts;
  for (const Layer& layer : layers_) {
    parts.push_back(linear(tape, source, layer.cross_kv.weight, {.bias = layer.cross_kv.bias}));
  }
  return concatenate(tape, parts);
}

}  // namespace brisk
