#include "models/dimtda.h"

#include <algorithm>
#include <string>

namespace brisk {

namespace {

constexpr int kPagePixels = 0, kLayoutPixels = 2, kFixedOfTwo = 3;  // row sets

// What the files of DiT have besides: no one reads it, and nothing trains it.
void declare_unread(const DimtdaConfig& config, ParameterStore& store) {
  for (const char* name : {"mask_token", "pooler_norm.gain", "pooler_norm.bias"}) {
    const bool ones = std::string(name).ends_with("gain");
    store.add({.name = std::string("layout_unread.") + name,
               .cols = config.layout.width(),
               .initial = {ones ? Initial::Kind::ones : Initial::Kind::zeros},
               .trained = false,
               .component = "layout_unread"});
  }
}

StackDeclaration::Matrix declare_matrix(const DimtdaConfig& config, ParameterStore& store, const std::string& name,
                                        int64_t rows, int64_t cols) {
  StackDeclaration declare(config.query_layers, store);
  declare.begin("", name);
  return declare.matrix(name, rows, cols);
}

TransformerStack declare_queries(const DimtdaConfig& config, ParameterStore& store, const std::string& name) {
  StackDeclaration declare(config.query_layers, store);
  declare.begin(name + ".", name);
  Parameter* const queries = declare.table("queries", config.queries, config.query_sizes.d_model, false);
  return {
      config.query_layers, config.query_sizes, store, name, {.table = queries, .source_width = config.page.width()}};
}

Parameter* declare_gate(ParameterStore& store, const std::string& name, int64_t cols, const Initial& initial) {
  return store.add({.name = name, .cols = cols, .decays = cols > 1, .initial = initial, .component = "gate"});
}

}  // namespace

Dimtda::Dimtda(const DimtdaConfig& config, ParameterStore& store)
    : config_(config),
      page_(config.page, store, "page_encoder."),
      layout_(config.layout, store, "layout_encoder."),
      layout_projection_(
          declare_matrix(config, store, "layout_projection", config.page.width(), config.layout.width())),
      page_queries_(declare_queries(config, store, "page_queries")),
      layout_queries_(declare_queries(config, store, "layout_queries")),
      gate_(declare_gate(store, "gate.weight", 2 * config.query_sizes.d_model, {Initial::Kind::normal, 0.02})),
      gate_bias_(declare_gate(store, "gate.bias", 1, {})),
      fusion_(declare_matrix(config, store, "fusion", config.page.width(), config.query_sizes.d_model)),
      decoder_(config.decoder, config.page.width(), store) {
  declare_unread(config, store);
}

int Dimtda::first_layout_set() const { return kFixedOfTwo + static_cast<int>(config_.page.fixed_rows().size()); }

int Dimtda::query_set() const { return first_layout_set() + static_cast<int>(config_.layout.fixed_rows().size()); }

Value Dimtda::encoded(Tape& tape) const {
  const Value page = page_.record(tape, kPagePixels, kFixedOfTwo).rows;
  const Value layout = linear(tape, layout_.record(tape, kLayoutPixels, first_layout_set()).rows,
                              layout_projection_.weight, {.bias = layout_projection_.bias});
  const Value n = page_queries_.output(tape, query_set(), {.rows = page});
  const Value d = layout_queries_.output(tape, query_set(), {.rows = layout});
  const Value both = multiply(tape, concatenate(tape, {n, d}), gate_);
  const Value alpha = pointwise(tape, add(tape, sum_columns(tape, both), gate_bias_), Activation::sigmoid, 1);
  return linear(tape, interpolate(tape, d, n, alpha), fusion_.weight, {.bias = fusion_.bias});
}

EncodedImages Dimtda::record_image_encoder(Tape& tape, int64_t encoder) const {
  const ImageEncoder::Output made = encoder == 0 ? page_.record(tape, kPagePixels, kFixedOfTwo)
                                                 : layout_.record(tape, kLayoutPixels, first_layout_set());
  return {made.rows, made.set};
}

LossValues Dimtda::loss(Tape& tape, const LossOptions& options) const {
  return decoder_.loss(tape, encoded(tape), options);
}

Value Dimtda::logits(Tape& tape) const { return decoder_.logits(tape, encoded(tape)); }

Value Dimtda::encode(Tape& tape) const { return decoder_.memory(tape, encoded(tape)); }

Value Dimtda::next_token_logits(Tape& tape) const { return decoder_.next_token_logits(tape, config_.queries); }

ImageLayout DimtdaConfig::image_layout() const {
  ImageLayout all{{page.input(), layout.input()}, page.fixed_rows()};
  for (const int64_t rows : layout.fixed_rows()) all.fixed_rows.push_back(rows);
  all.fixed_rows.push_back(queries);
  return all;
}

StackOptions DimtdaConfig::query_layers_with(double dropout, double attention_dropout) {
  StackOptions options;
  options.pre_norm = false;
  options.embedding_norm = true;
  options.norm_epsilon = 1e-12;
  options.feed_forward = StackOptions::FeedForward::gelu_erf;
  options.positions = StackOptions::Positions::none;
  options.scale_embeddings = false;
  options.dropout = dropout;
  options.attention_dropout = attention_dropout;
  return options;
}

std::unique_ptr<Model> DimtdaConfig::make(ParameterStore& store) const {
  return std::make_unique<Dimtda>(*this, store);
}

ModelWidths DimtdaConfig::widths() const {
  return {std::max({page.width(), layout.width(), query_sizes.d_model, decoder.sizes.d_model}),
          std::max({page.widest_d_ff(), layout.widest_d_ff(), query_sizes.d_ff, decoder.sizes.d_ff})};
}

uint64_t DimtdaConfig::fingerprint() const {
  return fingerprint_of("dimtda", page.fingerprint(), layout.fingerprint(), queries, fingerprint_of_stack(query_layers),
                        fingerprint_of_stack(query_sizes), decoder.fingerprint());
}

}  // namespace brisk
