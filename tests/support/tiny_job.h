// What the engine's tests share: two tiny decoders, a small corpus with a rule to learn, and loss curves to compare.
//
//   EngineOptions options = tiny_options(gpt_shape());
//   Curve curve = train_curve(options, packed_steps(tiny_corpus(), 6));
//   expect_same_curve(curve, other, 1e-5);
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/runtime.h"
#include "data/batch/chunk_sequences.h"
#include "data/batch/loader.h"
#include "data/batch/packer.h"
#include "data/corpus/corpus.h"
#include "models/decoder.h"
#include "text/tokenizer.h"
#include "train/engine/engine.h"

namespace brisk::testing {

// GPT-2's shape and Llama's, with dropout on.
inline DecoderConfig gpt_shape() {
  DecoderConfig config;
  config.vocab_size = 61;
  config.d_model = 32;
  config.num_layers = 3;
  config.num_heads = config.num_kv_heads = 4;
  config.d_ff = 64;
  config.max_length = 24;
  config.dropout = 0.1;
  return config;
}

inline DecoderConfig llama_shape() {
  DecoderConfig config = gpt_shape();
  config.num_kv_heads = 2;
  config.d_ff = 48;
  config.norm = NormKind::rms;
  config.feed_forward = DecoderConfig::FeedForward::swiglu;
  config.positions = DecoderConfig::Positions::rotary;
  config.bias = false;
  config.tie_embeddings = false;
  return config;
}

// The decoder of options that have one.
inline DecoderConfig& decoder_of(EngineOptions& options) { return *options.model.get_if<DecoderConfig>(); }
inline const DecoderConfig& decoder_of(const EngineOptions& options) { return *options.model.get_if<DecoderConfig>(); }
// The decoder that a model is.
inline const Decoder& as_decoder(const Model& model) { return dynamic_cast<const Decoder&>(model); }

inline EngineOptions tiny_options(const DecoderConfig& model) {
  EngineOptions options;
  options.model = model;
  options.capacity = {1024, 128, model.max_length};
  options.seed = 5;
  return options;
}

// Documents of 0 to 40 tokens over ids 1 .. 60 where one token mostly decides the next; 0 ends a document. With chunks
// of at most 24 rows, so sequences of length 1, short ones, and documents in several pieces.
struct Corpus {
  std::shared_ptr<const TokenStream> stream;
  std::vector<Chunk> chunks;

  std::shared_ptr<const Sequences> sequences() const { return text_sequences(stream, chunks); }
};

inline Corpus tiny_corpus(int documents = 160, uint64_t seed = 11, int64_t max_length = 24) {
  std::vector<std::vector<int32_t>> texts;
  for (int d = 0; d < documents; ++d) {
    const uint64_t key = random_key({seed, static_cast<uint64_t>(d)});
    const auto length = static_cast<int64_t>(41 * random_uniform(key, 0));
    std::vector<int32_t> text;
    int64_t token = 1 + static_cast<int64_t>(60 * random_uniform(key, 1));
    for (int64_t i = 0; i < length; ++i) {
      text.push_back(static_cast<int32_t>(token));
      const bool noise = random_uniform(key, static_cast<uint64_t>(2 * i + 2)) < 0.1;
      token = noise ? 1 + static_cast<int64_t>(60 * random_uniform(key, static_cast<uint64_t>(2 * i + 3)))
                    : 1 + (3 * token + 7) % 60;
    }
    texts.push_back(std::move(text));
  }
  Corpus corpus;
  corpus.stream = TokenStream::from_documents(texts, 0);
  corpus.chunks = whole_corpus(*corpus.stream, max_length).chunks;
  return corpus;
}

// This many compute threads while it lives. Most tests take one: ops this small are done sooner than two threads of a
// busy machine meet. Those about threads and about bits take two.
using Threads = ThreadsScope;

// The step's sequences divided as `members` says: numbers of chunks, one list a micro-batch.
inline StepBatch divided_step(const Corpus& corpus, std::span<const Chunk> chunks,
                              const std::vector<std::vector<int32_t>>& members) {
  StepBatch step;
  const ChunkSequences sequences(corpus.stream, std::vector<Chunk>(chunks.begin(), chunks.end()));
  std::vector<int64_t> all(chunks.size());
  std::iota(all.begin(), all.end(), 0);
  for (const auto& part : members) {
    step.micro_batches.push_back(pack(sequences, all, part));
    step.valid_tokens += step.micro_batches.back().rows();
    step.sequences += static_cast<int64_t>(part.size());
  }
  return step;
}

// `steps` optimizer steps of `sequences` sequences each, in micro-batches of `per_micro_batch` sequences.
inline std::vector<StepBatch> packed_steps(const Corpus& corpus, int steps, int sequences = 32,
                                           int per_micro_batch = 32) {
  std::vector<StepBatch> batches;
  for (int step = 0; step < steps; ++step) {
    BRISK_CHECK((step + 1) * sequences <= std::ssize(corpus.chunks), "{} chunks for {} steps", corpus.chunks.size(),
                steps);
    const std::span<const Chunk> chunks(corpus.chunks.data() + step * sequences, static_cast<size_t>(sequences));
    std::vector<std::vector<int32_t>> members;
    for (int32_t first = 0; first < sequences; first += per_micro_batch) {
      std::vector<int32_t> part(static_cast<size_t>(std::min(per_micro_batch, sequences - first)));
      std::iota(part.begin(), part.end(), first);
      members.push_back(std::move(part));
    }
    batches.push_back(divided_step(corpus, chunks, members));
  }
  return batches;
}

struct Curve {
  std::vector<double> losses;  // mean over the step's tokens
  std::vector<double> gradient_norms;
  std::vector<int64_t> correct;
  std::vector<float> masters;  // after the last step
};

inline std::vector<float> values_of(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows * tensor.cols));
  device.copy_out(values.data(), tensor.data, tensor.rows * tensor.cols * size_of(DType::f32));
  return values;
}

inline void put_values(Device& device, const Tensor& tensor, const std::vector<float>& values) {
  ASSERT_EQ(static_cast<int64_t>(values.size()), tensor.rows * tensor.cols);
  device.copy_in(tensor.data, values.data(), static_cast<int64_t>(values.size()) * size_of(DType::f32));
}

inline void train_on(Engine& engine, std::span<const StepBatch> steps, Curve& curve, int64_t first_step = 1,
                     double rate = 3e-3) {
  Ledger ledger;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepResult result = engine.train_step(steps[i], first_step + static_cast<int64_t>(i), rate, ledger);
    ASSERT_TRUE(result.finite());
    ASSERT_EQ(result.tokens, steps[i].valid_tokens);
    curve.losses.push_back(result.loss_sum / static_cast<double>(result.tokens));
    curve.gradient_norms.push_back(result.gradient_norm);
    curve.correct.push_back(result.correct);
  }
  curve.masters = values_of(engine.parameters().device(), engine.parameters().flat_master());
}

inline Curve train_curve(const EngineOptions& options, std::span<const StepBatch> steps) {
  Engine engine(options);
  engine.initialise(options.seed);
  Curve curve;
  train_on(engine, steps, curve);
  return curve;
}

// |a - b| / |b|, over all entries.
inline double distance(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double gap = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    gap += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return size > 0 ? std::sqrt(gap / size) : std::sqrt(gap);
}

// Every loss within `tolerance`, relatively.
inline void expect_same_curve(const Curve& a, const Curve& b, double tolerance) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  ASSERT_FALSE(a.losses.empty());
  for (size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance * std::fabs(b.losses[i])) << "loss of step " << i + 1;
  }
}

inline void expect_same_bits(const Curve& a, const Curve& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.gradient_norms, b.gradient_norms);
  EXPECT_EQ(a.correct, b.correct);
  ASSERT_EQ(a.masters.size(), b.masters.size());
  EXPECT_EQ(std::memcmp(a.masters.data(), b.masters.data(), a.masters.size() * sizeof(float)), 0)
      << "parameters differ after the last step";
}

// One id a printable character (1 .. 60) and 0 for the end of a document: a tokenizer for the tiny decoders.
class LetterTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    for (const char c : text) out.push_back(1 + (c - ' ') % 60);
  }
  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) text += piece(id);
    return text;
  }
  std::string piece(TokenId id) const override {
    return id == 0 ? "" : std::string(1, static_cast<char>(' ' + id - 1));
  }
  int64_t vocab_size() const override { return 61; }
  std::optional<TokenId> end_of_document() const override { return 0; }
  std::optional<TokenId> start_of_text() const override { return std::nullopt; }
  uint64_t fingerprint() const override { return 1; }
  void save(const std::string&) const override {}
};

// Both shapes, as test parameters.
struct Shape {
  std::string name;
  DecoderConfig config;
};
inline std::vector<Shape> both_shapes() { return {{"gpt", gpt_shape()}, {"llama", llama_shape()}}; }
inline void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

}  // namespace brisk::testing
