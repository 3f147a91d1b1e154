// Texts by a model that reads a source first, of whatever kind (models/model.h, ConditionalModel): beam search, greedy or
// drawn at random, of many sources at once.
//
//   ConditionalGenerator generator(model, parameters, frame, tokenizer.vocab_size());
//   generator.generate(sources, layout, requests, {.beam = 4}, [&](int64_t index, std::span<const Found> found) { ... });
//
// Sources of about the same length are decoded together, all their beams in one ragged batch: a row for each beam, no
// padding, and beams of a source that is done leave it. Keys and values of a beam's earlier tokens are kept, and follow it
// when beams change places; what cross-attention reads of a source is computed once and read by all its beams.
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/batch/sequences.h"
#include "data/examples/pair_sequences.h"
#include "infer/answer/beam_search.h"
#include "infer/forward/batch_layout.h"
#include "models/model.h"
#include "tensor/parameter.h"

namespace brisk {

class ConditionalGenerator {
 public:
  // Model and store must outlive the generator. `frame`: what a target begins with and ends at. `known`: tokens that the
  // tokenizer has, the only ones that are written.
  ConditionalGenerator(const ConditionalModel& model, const ParameterStore& store, PairFrame frame, int64_t known);
  ~ConditionalGenerator();
  ConditionalGenerator(ConditionalGenerator&&) noexcept;

  // Of each source: what it draws by where texts are drawn at random, and how many tokens a text of it may have, within what
  // the model writes.
  struct Request {
    uint64_t number = 0, part = 0;
    int64_t most_tokens = 0;
  };
  using Found = BeamSearch::Found;
  using OnFound = std::function<void(int64_t index, std::span<const Found> found)>;
  // `sources`: of the rows that ConditionalModel::encode() reads, in micro-batches of this layout, which must be the same each
  // time. Texts of a source, the best first, come when it is done, in any order. Throws Cancelled.
  void generate(const Sequences& sources, const BatchLayout& layout, std::span<const Request> requests,
                const TranslateOptions& options, const OnFound& on_found);
  int64_t tokens() const { return tokens_; }  // of all texts so far

  const PairFrame& frame() const { return frame_; }

 private:
  struct State;
  int64_t most_tokens(const Request& request) const;
  int64_t memory_rows(const Sequences& sources, int64_t index) const;
  void decode(const Sequences& sources, const BatchLayout& layout, std::span<const Request> requests,
              std::span<const int64_t> group, const TranslateOptions& options, const OnFound& on_found);

  const ConditionalModel& model_;
  const ParameterStore& store_;
  PairFrame frame_;
  int64_t known_;
  std::unique_ptr<State> state_;
  int64_t tokens_ = 0;
};

}  // namespace brisk
