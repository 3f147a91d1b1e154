#include "models/image_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/model_config.h"

namespace brisk {

namespace {

constexpr double kSwinEmbeddingEpsilon =
    1e-5;  // of the norms of patches and of merged patches, whatever norm_epsilon is

int64_t grid_height(const ImageEncoderConfig& config, size_t stage) {
  return config.image.height / config.image.patch >> stage;
}
int64_t grid_width(const ImageEncoderConfig& config, size_t stage) {
  return config.image.width / config.image.patch >> stage;
}
int64_t stage_width(const ImageEncoderConfig& config, size_t stage) { return config.d_model << stage; }

// As one stage, what has none.
std::vector<ImageEncoderConfig::Stage> stages_of(const ImageEncoderConfig& config) {
  if (config.kind == ImageEncoderConfig::Kind::swin) return config.stages;
  return {{config.num_layers, config.num_heads, config.d_ff}};
}

// A window as large as the grid is not shifted.
int64_t shift_of(const ImageEncoderConfig& config, size_t stage) {
  return std::min(grid_height(config, stage), grid_width(config, stage)) <= config.window ? 0 : config.window / 2;
}

bool is_swin(const ImageEncoderConfig& config) { return config.kind == ImageEncoderConfig::Kind::swin; }

}  // namespace

int64_t ImageEncoderConfig::layers() const {
  int64_t sum = 0;
  for (const Stage& stage : stages_of(*this)) sum += stage.num_layers;
  return sum;
}

int64_t ImageEncoderConfig::rows() const {
  if (kind != Kind::swin) return image.rows();
  const size_t last = stages.size() - 1;
  return grid_height(*this, last) * grid_width(*this, last);
}

int64_t ImageEncoderConfig::width() const {
  return kind == Kind::swin ? stage_width(*this, stages.size() - 1) : d_model;
}

int64_t ImageEncoderConfig::widest_d_ff() const {
  int64_t widest = 0;
  for (const Stage& stage : stages_of(*this)) widest = std::max(widest, stage.d_ff);
  return widest;
}

std::vector<int64_t> ImageEncoderConfig::fixed_rows() const {
  std::vector<int64_t> rows;
  for (size_t stage = 1; kind == Kind::swin && stage < stages.size(); ++stage) {
    rows.push_back(grid_height(*this, stage) * grid_width(*this, stage));
  }
  return rows;
}

uint64_t ImageEncoderConfig::fingerprint() const {
  // Every field by name: a new one does not compile until it is decided on here. Dropout and what is frozen or cached do not
  // change the function, nor does the value that factors begin with.
  const auto& [of_kind, input, D, L, H, F, of_stages, side, position_kind, epsilon, biased, scale, normed, dropped,
               attention_dropped, frozen_layers, from_file] = *this;
  const auto& [height, width, patch, class_row, processing] = input;
  uint64_t hash = fingerprint_of("image_encoder", of_kind, height, width, patch, class_row, processing.fingerprint(), D,
                                 L, H, F, side, position_kind, epsilon, biased, scale > 0, normed);
  for (size_t color = 0; color < processing.mean.size(); ++color) {
    hash = hash_mix(hash, fingerprint_of("color", processing.mean[color], processing.std[color]));
  }
  for (const Stage& stage : of_stages) {
    hash = hash_mix(hash, fingerprint_of("stage", stage.num_layers, stage.num_heads, stage.d_ff));
  }
  return hash;
}

void check_image_encoder(const ImageEncoderConfig& config, const std::string& where) {
  check_image_input(config.image, where);
  const std::vector<ImageEncoderConfig::Stage> stages = stages_of(config);
  if (stages.empty()) user_error("{}: a Swin without stages", where);
  if (is_swin(config) && config.positions != ImageEncoderConfig::Positions::none) {
    user_error("{}: a Swin with absolute positions is not supported: its windows' biases tell places", where);
  }
  for (size_t s = 0; s < stages.size(); ++s) {
    const int64_t width = is_swin(config) ? stage_width(config, s) : config.d_model;
    if (stages[s].num_heads < 1 || width % stages[s].num_heads != 0) {
      user_error("{}: a width of {} is not divisible by {} attention heads{}", where, width, stages[s].num_heads,
                 is_swin(config) ? fmt::format(" (stage {})", s + 1) : "");
    }
    if (!is_swin(config)) continue;
    const int64_t rows = grid_height(config, s), cols = grid_width(config, s);
    const int64_t whole = config.image.patch << s;
    if (config.image.height % whole != 0 || config.image.width % whole != 0) {
      user_error(
          "{}: images of {} x {} cannot be halved to stage {}, whose patches are {} x {} pixels: use sides that are "
          "multiples of that",
          where, config.image.height, config.image.width, s + 1, whole, whole);
    }
    if (rows % config.window != 0 || cols % config.window != 0) {
      user_error(
          "{}: stage {} has {} x {} patches, which are no whole windows of {} x {} (window_size): use images whose sides "
          "are multiples of {} pixels, or another window_size",
          where, s + 1, rows, cols, config.window, config.window, whole * config.window);
    }
  }
}

// Declares the parameters, part by part.
class ImageEncoder::Declaration {
 public:
  Declaration(const ImageEncoderConfig& config, ParameterStore& store, std::string prefix)
      : config_(config), store_(store), prefix_(std::move(prefix)), trained_(config.frozen < 0) {}

  void begin(std::string part, bool trained) {
    part_ = prefix_ + std::move(part);
    trained_ = trained;
  }
  void count_in(std::string component) { component_ = prefix_ + component; }
  Parameter* add(const std::string& name, int64_t rows, int64_t cols, ParameterSpec spec) {
    spec.name = part_ + name;
    spec.rows = rows;
    spec.cols = cols;
    spec.trained = trained_;
    spec.component = component_;
    return store_.add(std::move(spec));
  }
  Parameter* weight(const std::string& name, int64_t rows, int64_t cols, bool hidden = true,
                    std::vector<int64_t> parts = {}) {
    return add(name + ".weight", rows, cols,
               {.decays = true,
                .multiplies = true,
                .initial = {Initial::Kind::normal, 0.02},
                .parts = std::move(parts),
                .hidden = hidden});
  }
  Parameter* vector(const std::string& name, int64_t cols) { return add(name, 1, cols, {}); }
  Matrix matrix(const std::string& name, int64_t rows, int64_t cols) {
    return {weight(name, rows, cols), vector(name + ".bias", rows)};
  }
  Norm norm(const std::string& name, int64_t cols) {
    return {add(name + ".gain", 1, cols, {.initial = {Initial::Kind::ones}}), vector(name + ".bias", cols)};
  }
  // Positions are told apart from the start; differences of places are learned from nothing.
  Parameter* positions(int64_t rows, int64_t cols) {
    return add("positions.weight", rows, cols, {.decays = true, .initial = {Initial::Kind::normal, 0.02}});
  }
  Parameter* relative(const GridWindows& windows, int64_t heads) {
    return add("relative.weight", window_bias_rows(windows), heads, {});
  }
  Parameter* scale(const std::string& name, int64_t cols) {
    if (config_.layer_scale <= 0) return nullptr;
    return add(name, 1, cols, {.initial = {Initial::Kind::normal, 0, config_.layer_scale}});
  }

  Layer layer(int64_t width, int64_t heads, int64_t d_ff, const GridWindows& windows) {
    using Positions = ImageEncoderConfig::Positions;
    Layer layer;
    layer.heads = heads;
    count_in("norms");
    layer.attention_norm = norm("attention_norm", width);
    count_in("attention projections");
    layer.qkv.weight = weight("qkv", 3 * width, width, true, {width, width, width});
    if (config_.qkv_bias && config_.kind == ImageEncoderConfig::Kind::beit) {
      layer.qkv.bias = vector("query.bias", width);
      layer.value_bias = vector("value.bias", width);
    } else if (config_.qkv_bias) {
      layer.qkv.bias = vector("qkv.bias", 3 * width);
    }
    count_in("relative positions");
    if (is_swin(config_) || config_.positions == Positions::relative) layer.relative = relative(windows, heads);
    count_in("attention projections");
    layer.attention_out = matrix("attention_out", width, width);
    count_in("layer scales");
    layer.attention_scale = scale("attention_scale", width);
    count_in("norms");
    layer.feed_forward_norm = norm("feed_forward_norm", width);
    count_in("feed-forward");
    layer.up = matrix("up", d_ff, width);
    layer.down = matrix("down", width, d_ff);
    count_in("layer scales");
    layer.feed_forward_scale = scale("feed_forward_scale", width);
    return layer;
  }

 private:
  const ImageEncoderConfig& config_;
  ParameterStore& store_;
  std::string prefix_, part_, component_;
  bool trained_;
};

ImageEncoder::ImageEncoder(const ImageEncoderConfig& config, ParameterStore& store, const std::string& prefix)
    : config_(config) {
  using Positions = ImageEncoderConfig::Positions;
  check_image_encoder(config, "image encoder");
  const int64_t D = config.d_model;
  Declaration declare(config, store, prefix);
  declare.begin("", config.frozen < 0);
  declare.count_in("patches");
  patches_ = declare.weight("patches", D, config.image.cols(), false);
  if (config.image.class_row) {
    table_ = declare.add("patches.table", 2, D, {});
  } else {
    table_ = declare.vector("patches.bias", D);
  }
  declare.count_in("norms");
  if (is_swin(config)) embedding_norm_ = declare.norm("embedding_norm", D);
  declare.count_in("positions");
  if (config.positions == Positions::learned) positions_ = declare.positions(config.image.rows(), D);
  if (config.positions == Positions::shared_relative && !is_swin(config)) {
    shared_relative_ = declare.relative(windows(0, 0), config.num_heads);
  }
  const std::vector<ImageEncoderConfig::Stage> sizes = stages_of(config);
  int64_t number = 0;
  for (size_t s = 0; s < sizes.size(); ++s) {
    Stage stage;
    const int64_t width = is_swin(config) ? stage_width(config, s) : D;
    for (int64_t l = 0; l < sizes[s].num_layers; ++l, ++number) {
      declare.begin(is_swin(config) ? fmt::format("stages.{}.layers.{}.", s, l) : fmt::format("layers.{}.", l),
                    number >= config.frozen);
      stage.layers.push_back(declare.layer(width, sizes[s].num_heads, sizes[s].d_ff, windows(s, l)));
    }
    if (s + 1 < sizes.size()) {  // frozen where the next layer is
      declare.begin(fmt::format("stages.{}.", s), number >= config.frozen);
      declare.count_in("norms");
      stage.merge_norm = declare.norm("merge_norm", 4 * width);
      declare.count_in("merging");
      stage.merge = declare.weight("merge", 2 * width, 4 * width);
    }
    stages_.push_back(std::move(stage));
  }
  declare.begin("", config.frozen < number);
  declare.count_in("norms");
  if (config.final_norm) final_norm_ = declare.norm("final_norm", config.width());
}

GridWindows ImageEncoder::windows(size_t stage, int64_t layer) const {
  const int64_t height = grid_height(config_, stage), width = grid_width(config_, stage);
  if (!is_swin(config_)) return GridWindows::whole(height, width, config_.image.class_row);
  return GridWindows::of(height, width, config_.window, layer % 2 == 0 ? 0 : shift_of(config_, stage));
}

Value ImageEncoder::embed(Tape& tape, int set) const {
  const ImageInput& image = config_.image;
  const Value pixels = pixel_rows(
      tape, set,
      {.patch = image.patch, .mean = image.processing.mean, .std = image.processing.std, .class_row = image.class_row});
  if (is_swin(config_)) {
    const Value patches = linear(tape, pixels, patches_, {.bias = table_});
    const Value normed =
        norm(tape, patches, NormKind::layer, embedding_norm_.gain, embedding_norm_.bias, kSwinEmbeddingEpsilon);
    return convert(tape, normed, DType::f32);
  }
  const Value table = embedding(tape, set, table_, {.positions = positions_});
  return linear(tape, pixels, patches_, {.residual = table});
}

Value ImageEncoder::projections(Tape& tape, Value x, const Layer& layer) const {
  if (layer.value_bias == nullptr) return linear(tape, x, layer.qkv.weight, {.bias = layer.qkv.bias});
  const int64_t D = layer.qkv.weight->spec.cols;
  const auto part = [&](int64_t first, Parameter* bias) {
    return linear(tape, x, layer.qkv.weight, {.bias = bias, .first_row = first, .rows = D});
  };
  const Value q = part(0, layer.qkv.bias), k = part(D, nullptr), v = part(2 * D, layer.value_bias);
  return concatenate(tape, {q, k, v});
}

Value ImageEncoder::add_part(Tape& tape, Value part, const Matrix& out, Parameter* scale, Value h,
                             double dropout) const {
  LinearOptions options{.bias = out.bias, .dropout = dropout};
  if (scale == nullptr) {
    options.residual = h;
    return linear(tape, part, out.weight, options);
  }
  return add(tape, h, multiply(tape, linear(tape, part, out.weight, options), scale));
}

Value ImageEncoder::record_layer(Tape& tape, Value h, const Layer& layer, const GridWindows& windows, Value bias,
                                 bool trained) const {
  const double dropout = trained ? config_.dropout : 0, attention_dropout = trained ? config_.attention_dropout : 0;
  Value x = norm(tape, h, NormKind::layer, layer.attention_norm.gain, layer.attention_norm.bias, config_.norm_epsilon);
  const Value qkv = projections(tape, x, layer);
  const GridAttentionShape shape{windows, layer.heads, layer.up.weight->spec.cols / layer.heads};
  if (bias) {
    x = grid_attention(tape, qkv, shape, bias, attention_dropout);
  } else {
    x = self_attention(tape, qkv, {layer.heads, layer.heads, shape.head_width, shape.scale(), false},
                       attention_dropout);
  }
  h = add_part(tape, x, layer.attention_out, layer.attention_scale, h, dropout);
  x = norm(tape, h, NormKind::layer, layer.feed_forward_norm.gain, layer.feed_forward_norm.bias, config_.norm_epsilon);
  x = linear(tape, x, layer.up.weight, {.bias = layer.up.bias, .activation = Activation::gelu_erf});
  return add_part(tape, x, layer.down, layer.feed_forward_scale, h, dropout);
}

int ImageEncoder::output_set(int pixel_set, int first_fixed_set) const {
  return stages_.size() == 1 ? pixel_set : first_fixed_set + static_cast<int>(stages_.size()) - 2;
}

ImageEncoder::Output ImageEncoder::record(Tape& tape, int pixel_set, int first_fixed_set) const {
  const int output = output_set(pixel_set, first_fixed_set);
  if (config_.cached) return {input_rows(tape, output, config_.width()), output};
  Value h = embed(tape, pixel_set);
  Value shared = shared_relative_ == nullptr ? Value{} : window_bias(tape, shared_relative_, windows(0, 0));
  int64_t number = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    for (size_t l = 0; l < stage.layers.size(); ++l, ++number) {
      const Layer& layer = stage.layers[l];
      const GridWindows within = windows(s, static_cast<int64_t>(l));
      const Value bias = layer.relative != nullptr ? window_bias(tape, layer.relative, within) : shared;
      h = record_layer(tape, h, layer, within, bias, number >= config_.frozen);
      tape.end_layer();
    }
    if (stage.merge == nullptr) continue;
    const Value merged =
        merge_grid(tape, h, first_fixed_set + static_cast<int>(s), grid_height(config_, s), grid_width(config_, s));
    const Value x =
        norm(tape, merged, NormKind::layer, stage.merge_norm.gain, stage.merge_norm.bias, kSwinEmbeddingEpsilon);
    h = convert(tape, linear(tape, x, stage.merge), DType::f32);
  }
  if (config_.final_norm) {
    h = norm(tape, h, NormKind::layer, final_norm_.gain, final_norm_.bias, config_.norm_epsilon);
  }
  return {h, output};
}

}  // namespace brisk
