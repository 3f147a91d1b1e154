// Encoders of images: ViT, BEiT (DiT is one) and Swin by options. An image is rows of patches (image/image_input.h), which
// come with the micro-batch as pixels; what comes out is rows that a decoder or a classifier reads.
//
//   ParameterStore store;
//   ImageEncoder encoder(config, store, "encoder.");                       // declares the parameters
//   const ImageEncoder::Output seen = encoder.record(tape, /*pixel_set=*/0, /*first_fixed_set=*/2);
//   seen.rows;                                                             // [S config.rows(), config.width()] of set seen.set
//
// Swin halves its grid from stage to stage: the rows of each coarser grid are a row set of their own, derived from that of
// the pixels, with as many rows for each image as fixed_rows() says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/image_input.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

// Row sets of a micro-batch with one image for each sequence: its patches, and the first set of fixed_rows(). What a model
// predicts is between the two.
constexpr int kPixelSet = 0, kFirstFixedSet = 2;

struct ImageEncoderConfig {
  enum class Kind : uint8_t { vit, beit, swin } kind = Kind::vit;
  ImageInput image;

  int64_t d_model = 768;  // D; of Swin: of the first stage, twice as many in each further one
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t d_ff = 3072;
  // Of Swin, of each stage, in place of these three.
  struct Stage {
    int64_t num_layers = 2, num_heads = 1, d_ff = 0;
    bool operator==(const Stage&) const = default;
  };
  std::vector<Stage> stages;
  int64_t window = 7;  // rows and columns of a window; every other layer has windows shifted by half of it

  // Learned: a table with a row for each patch. Relative: a bias of attention for each distance, of each layer or one for all
  // (BEiT); Swin always has such biases within its windows, whatever this says.
  enum class Positions : uint8_t { none, learned, relative, shared_relative } positions = Positions::learned;
  double norm_epsilon = 1e-12;
  bool qkv_bias = true;    // BEiT: of queries and values; keys have none
  double layer_scale = 0;  // initial factor of what each half of a layer adds; 0: none
  bool final_norm = true;

  double dropout = 0;  // of what each half of a layer adds
  double attention_dropout = 0;
  int64_t frozen =
      -1;  // -1: nothing; 0: the embeddings; n: those and the first n layers; all of them: the final norm, too

  // Its output comes with the batch (DeviceBatch::Set::inputs of the output's row set), because it is frozen and was computed
  // beforehand: nothing of it is recorded.
  bool cached = false;

  int64_t layers() const;  // of all stages
  int64_t rows() const;    // of its output, for each image
  int64_t width() const;
  int64_t widest_d_ff() const;
  std::vector<int64_t> fixed_rows() const;  // of the row sets that it needs besides that of the pixels, for each image
  ImageInput input() const { return image; }
  uint64_t fingerprint() const;
  bool operator==(const ImageEncoderConfig&) const = default;
};

// UserError, naming `where` ("model.encoder: "), for sizes that do not fit each other.
void check_image_encoder(const ImageEncoderConfig& config, const std::string& where);

class ImageEncoder {
 public:
  ImageEncoder(const ImageEncoderConfig& config, ParameterStore& store, const std::string& prefix);

  struct Output {
    Value rows;   // [N, width]
    int set = 0;  // the row set they are of
  };
  Output record(Tape& tape, int pixel_set, int first_fixed_set) const;
  // The row set of the output.
  int output_set(int pixel_set, int first_fixed_set) const;

  const ImageEncoderConfig& config() const { return config_; }

 private:
  struct Matrix {
    Parameter *weight = nullptr, *bias = nullptr;
  };
  struct Norm {
    Parameter *gain = nullptr, *bias = nullptr;
  };
  struct Layer {
    Norm attention_norm;
    Matrix qkv;
    Parameter* value_bias = nullptr;  // of BEiT, where qkv.bias is the queries' alone
    Parameter* relative = nullptr;    // table of relative positions
    Matrix attention_out;
    Parameter* attention_scale = nullptr;
    Norm feed_forward_norm;
    Matrix up, down;
    Parameter* feed_forward_scale = nullptr;
    int64_t heads = 0;
  };
  struct Stage {
    std::vector<Layer> layers;
    Norm merge_norm;  // of what leads to the next one
    Parameter* merge = nullptr;
  };
  class Declaration;

  // Of a layer of a stage: shifted in every other one.
  GridWindows windows(size_t stage, int64_t layer) const;
  Value embed(Tape& tape, int set) const;
  Value record_layer(Tape& tape, Value h, const Layer& layer, const GridWindows& windows, Value bias,
                     bool trained) const;
  Value projections(Tape& tape, Value x, const Layer& layer) const;  // queries, keys and values side by side
  // h + scale * (part W^T + bias)
  Value add_part(Tape& tape, Value part, const Matrix& out, Parameter* scale, Value h, double dropout) const;

  ImageEncoderConfig config_;
  Parameter* patches_ = nullptr;    // [D, 3 P P]
  Parameter* table_ = nullptr;      // [2, D]: the bias of the patches and the class token; or [1, D], a bias (Swin)
  Parameter* positions_ = nullptr;  // [rows, D]
  Norm embedding_norm_;
  Parameter* shared_relative_ = nullptr;
  std::vector<Stage> stages_;
  Norm final_norm_;
};

}  // namespace brisk
