// Encoder-decoders of every shape: the source is row set 0, the target row set 1, both ragged, with the same number of
// sequences.
#include "models/encoder_decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "infer/forward/decoding_cache.h"
#include "models/model_costs.h"
#include "optim/adamw.h"
#include "support/encoder_decoder_job.h"
#include "support/numeric.h"
#include "support/optimizer_step.h"

namespace brisk {
namespace {

using namespace brisk::testing;

constexpr const char* kShapes[] = {"vanilla", "post", "marian", "bart", "t5", "t5_gated", "bert2bert", "rotary"};

class EveryEncoderDecoder : public ::testing::TestWithParam<const char*> {
 protected:
  const EncoderDecoderConfig config_ = tiny_encoder_decoder(GetParam());
  const StepBatch pairs_ = step_of_pairs();
};

INSTANTIATE_TEST_SUITE_P(Shapes, EveryEncoderDecoder, ::testing::ValuesIn(kShapes),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EveryEncoderDecoder, GradientsAreTheSlopesOfTheLoss) {
  EncoderDecoderConfig config = without_dropout(config_);
  using FeedForward = EncoderDecoderConfig::FeedForward;
  if (config.feed_forward == FeedForward::relu) config.feed_forward = FeedForward::gelu_erf;  // which has no corner
  PairsJob job(config);
  for (const auto& parameter : job.parameters().all()) {
    if (!parameter->spec.trained) continue;
    const std::vector<float> values = values_of(cpu_device(), parameter->master);
    job.run(pairs_);
    const std::vector<float> gradient = job.gradient(*parameter);
    const auto loss_at = [&](size_t entry, float shift) {
      std::vector<float> shifted = values;
      shifted[entry] += shift;
      put_values(cpu_device(), parameter->master, shifted);
      return job.run(pairs_);
    };
    const float h = config.norm == NormKind::rms ? 0.008f : 0.03f;
    double gap = 0, size = 0;
    for (size_t entry = 1; entry < values.size(); entry += std::max<size_t>(1, values.size() / 6)) {
      // The five-point rule: its error falls with the fourth power, so the shift can be large against fp32's rounding; but not
      // against T5's embeddings, which are normalized as they are.
      const double slope =
          (8 * (loss_at(entry, h) - loss_at(entry, -h)) - (loss_at(entry, 2 * h) - loss_at(entry, -2 * h))) /
          (12.0 * h);
      gap += (slope - gradient[entry]) * (slope - gradient[entry]);
      size += slope * slope;
    }
    put_values(cpu_device(), parameter->master, values);
    EXPECT_LE(std::sqrt(gap), 1e-2 * std::sqrt(size) + 2e-6 / h) << parameter->spec.name;
  }
}

TEST_P(EveryEncoderDecoder, HasAGradientOfEveryParameter) {
  PairsJob job(config_);
  job.run(pairs_);
  for (const auto& parameter : job.parameters().all()) {
    if (!parameter->spec.trained) continue;
    const std::vector<float> gradient = job.gradient(*parameter);
    EXPECT_GT(distance(gradient, std::vector<float>(gradient.size(), 0.0f)), 1e-4) << parameter->spec.name;
  }
}

TEST_P(EveryEncoderDecoder, IsTheSameOnTheReferenceRecomputedAndOnUnreadableMemory) {
  PairsJob job(config_), reference(config_, {.backend = Backend::reference}),
      recomputed(config_, {.checkpoint_every = 1}), pairs_recomputed(config_, {.checkpoint_every = 2}),
      guarded(config_, {.checkpoint_every = 1, .device = &guarded_device()});
  const double loss = job.run(pairs_);
  const std::vector<float> gradients = job.gradients();
  EXPECT_NEAR(reference.run(pairs_), loss, 1e-5 * loss);
  EXPECT_LE(distance(reference.gradients(), gradients), 2e-5);
  for (PairsJob* other : {&recomputed, &pairs_recomputed, &guarded}) {
    EXPECT_EQ(other->run(pairs_), loss);
    EXPECT_EQ(other->gradients(), gradients);
  }
  EXPECT_LT(recomputed.arena_bytes(), job.arena_bytes());
}

TEST_P(EveryEncoderDecoder, IsTheSameWithEveryNumberOfThreads) {
  std::vector<float> gradients;
  double loss = 0;
  {
    PairsJob job(config_);
    loss = job.run(pairs_);
    gradients = job.gradients();
  }
  PairsJob job(config_, {.threads = 3});
  EXPECT_EQ(job.run(pairs_), loss);
  EXPECT_EQ(job.gradients(), gradients);
}

TEST_P(EveryEncoderDecoder, IsTheSameOnEveryInstructionSet) {
  PairsJob reference(config_, {.backend = Backend::reference});
  const double loss = reference.run(pairs_);
  for_each_isa([&](Isa) {
    PairsJob job(config_);
    EXPECT_NEAR(job.run(pairs_), loss, 1e-5 * loss);
    EXPECT_LE(distance(job.gradients(), reference.gradients()), 2e-5);
  });
}

TEST_P(EveryEncoderDecoder, IsCloseInBf16) {
  const EncoderDecoderConfig config = without_dropout(config_);
  PairsJob exact(config);
  const double loss = exact.run(pairs_);
  // T5's scores are not scaled: rounding them by as much moves more of the probabilities.
  const double tolerance = config.scale_attention ? 5e-2 : 1e-1;
  for_each_isa([&](Isa) {
    PairsJob job(config, {.type = DType::bf16});
    EXPECT_NEAR(job.run(pairs_), loss, 2e-2 * loss);
    EXPECT_LE(distance(job.gradients(), exact.gradients()), tolerance);
  });
}

// Packed pairs give the sum of the pairs alone: no sequence sees another's source or target.
TEST_P(EveryEncoderDecoder, PairsDoNotSeeEachOther) {
  PairsJob job(without_dropout(config_));
  const double packed = job.run(pairs_) * static_cast<double>(pairs_.valid_tokens);
  double sum = 0;
  for (size_t s = 0; s < kSourceLengths.size(); ++s) {
    StepBatch alone;
    alone.micro_batches = {cut(pairs_.micro_batches[0], s)};
    alone.valid_tokens = alone.micro_batches[0].sets[1].rows();
    sum += job.run(alone) * static_cast<double>(alone.valid_tokens);
  }
  EXPECT_NEAR(packed, sum, 1e-5 * sum);
}

TEST_P(EveryEncoderDecoder, LearnsTheSameHoweverItsPairsAreDivided) {
  PairsJob job(config_), divided(config_);
  ASSERT_EQ(pairs_.micro_batches.size(), 1u);
  const StepBatch parts = step_of_pairs(12);  // and 9 targets
  ASSERT_GE(parts.micro_batches.size(), 3u);
  for (const MicroBatch& part : parts.micro_batches) {
    EXPECT_LE(part.sets[0].rows(), 12);
    EXPECT_LE(part.sets[1].rows(), 9);
  }
  const double loss = job.run(pairs_);
  EXPECT_NEAR(divided.run(parts), loss, 1e-5 * loss);
  EXPECT_LE(distance(divided.gradients(), job.gradients()), 1e-5);
}

TEST_P(EveryEncoderDecoder, LearnsToReverse) {
  PairsJob job(config_);
  const double first = job.run(pairs_);
  AdamW adamw(job.parameters(), {});
  OptimizerStep optimizer_step(job.parameters(), adamw);
  for (int64_t step = 1; step <= 60; ++step) {
    job.run(pairs_, static_cast<uint64_t>(step));
    optimizer_step.run(step, 1e-2);
  }
  EXPECT_GT(first, 2.0);
  EXPECT_LT(job.run(pairs_, 61), 0.6 * first);
}

TEST_P(EveryEncoderDecoder, LearnsOnAGpuWhatItLearnsHere) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  PairsJob here(config_), there(config_, {.backend = Backend::cuda, .device = &cuda_device()});
  const double loss = here.run(pairs_);
  EXPECT_NEAR(there.run(pairs_), loss, 1e-5 * loss);
  EXPECT_LE(distance(there.gradients(), here.gradients()), 2e-5);
}

// Decoding: the sources are encoded once, and the targets come row by row through the cache.
class Decoding {
 public:
  Decoding(PairsJob& job, const MicroBatch& pairs, int64_t slots, int64_t rows_at_once)
      : job_(job),
        sources_(pairs.sets[0]),
        encoder_(job.parameters(), {.rows = {{64, 8, kLongestOfPairs}}, .backend = backend_of(job.device())},
                 [&](Tape& tape) { return job.model().encode(tape); }),
        decoder_(job.parameters(),
                 {.rows = {{slots * rows_at_once, slots, rows_at_once}}, .backend = backend_of(job.device())},
                 [&](Tape& tape) { return job.model().next_token_logits(tape); }),
        cache_(job.parameters(), job.model(), slots, kLongestOfPairs) {
    MicroBatch batch;
    batch.sets[0] = sources_;
    encoder_.forward(batch, ledger_);
    cache_.read_memory(encoder_.value());
  }

  struct Text {
    int64_t slot, pair;
    std::vector<int32_t> tokens;  // so far
    size_t first = 0;             // of those that are new
  };
  // [texts, V]: what comes after each.
  std::vector<float> next(const std::vector<Text>& texts) {
    MicroBatch batch;
    MicroBatch::Set& rows = batch.sets[0];
    std::vector<DecodingCache::Sequence> sequences;
    for (const Text& text : texts) {
      for (size_t p = text.first; p < text.tokens.size(); ++p) {
        rows.tokens.push_back(text.tokens[p]);
        rows.position.push_back(static_cast<int32_t>(p));
        rows.sequence.push_back(static_cast<int32_t>(sequences.size()));
      }
      rows.end_sequence(rows.tokens.size());
      const auto pair = static_cast<size_t>(text.pair);
      sequences.push_back({.slot = text.slot,
                           .length = std::ssize(text.tokens),
                           .memory_begin = sources_.starts[pair],
                           .memory_end = sources_.starts[pair + 1]});
    }
    cache_.begin(sequences);
    decoder_.forward(batch, ledger_, &cache_.entries());
    std::vector<float> logits;
    decoder_.read(logits);
    logits.resize(texts.size() * static_cast<size_t>(kPairVocabulary));
    return logits;
  }
  DecodingCache& cache() { return cache_; }

 private:
  PairsJob& job_;
  MicroBatch::Set sources_;
  ForwardRun encoder_, decoder_;
  DecodingCache cache_;
  Ledger ledger_;
};

std::vector<int32_t> target_of(const MicroBatch& pairs, size_t pair) {
  const MicroBatch::Set& targets = pairs.sets[1];
  return {targets.tokens.begin() + targets.starts[pair], targets.tokens.begin() + targets.starts[pair + 1]};
}

// Rows of [N, V].
std::vector<float> row_of(const std::vector<float>& logits, size_t row) {
  const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row) * kPairVocabulary;
  return {first, first + kPairVocabulary};
}

void expect_same_logits_step_by_step(PairsJob& job, const MicroBatch& pairs, double tolerance) {
  const std::vector<float> whole = job.logits(pairs);
  Decoding decoding(job, pairs, 5, 1);
  for (size_t step = 0; step < kLongestOfPairs; ++step) {
    std::vector<Decoding::Text> texts;  // those that go on; the others leave
    for (size_t pair = 5; pair-- > 0;) {
      std::vector<int32_t> target = target_of(pairs, pair);
      if (target.size() <= step) continue;
      target.resize(step + 1);
      texts.push_back({static_cast<int64_t>(pair), static_cast<int64_t>(pair), target, step});
    }
    if (texts.empty()) break;
    const std::vector<float> logits = decoding.next(texts);
    for (size_t t = 0; t < texts.size(); ++t) {
      const auto row = static_cast<size_t>(pairs.sets[1].starts[static_cast<size_t>(texts[t].pair)]) + step;
      EXPECT_LE(distance(row_of(logits, t), row_of(whole, row)), tolerance)
          << "pair " << texts[t].pair << ", row " << step;
    }
  }
}

TEST_P(EveryEncoderDecoder, DecodesStepByStepWhatItComputesAtOnce) {
  PairsJob job(config_);
  for_each_isa([&](Isa) { expect_same_logits_step_by_step(job, pairs_.micro_batches[0], 1e-5); });
  PairsJob guarded(config_, {.device = &guarded_device()});
  expect_same_logits_step_by_step(guarded, pairs_.micro_batches[0], 1e-5);
  PairsJob bf16(config_, {.type = DType::bf16});
  expect_same_logits_step_by_step(bf16, pairs_.micro_batches[0], 3e-2);
}

TEST_P(EveryEncoderDecoder, DecodesOnAGpuWhatItComputesAtOnce) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  PairsJob job(config_, {.backend = Backend::cuda, .device = &cuda_device()});
  expect_same_logits_step_by_step(job, pairs_.micro_batches[0], 1e-5);
}

// Beams of one source read the same memory, are of different lengths, and go on from each other's rows.
TEST_P(EveryEncoderDecoder, ContinuesBeamsFromOtherSlots) {
  PairsJob job(config_);
  const MicroBatch& pairs = pairs_.micro_batches[0];
  const std::vector<int32_t> target = target_of(pairs, 3);  // of 9 tokens
  const std::vector<float> whole = job.logits(pairs);
  const auto expected = [&](size_t row) { return row_of(whole, static_cast<size_t>(pairs.sets[1].starts[3]) + row); };
  const auto begin = [&](size_t count) { return std::vector<int32_t>(target.begin(), target.begin() + count); };

  Decoding decoding(job, pairs, 4, 5);
  std::vector<float> logits = decoding.next({{0, 3, begin(3), 0}, {1, 3, {0, 5, 5, 5}, 0}, {2, 1, {0}, 0}});
  EXPECT_LE(distance(row_of(logits, 0), expected(2)), 1e-5);
  const std::vector<float> other = row_of(logits, 1);
  // The second goes on from where the first is, and a third does.
  decoding.cache().copy({{{.from = 0, .to = 1, .length = 3}, {.from = 0, .to = 3, .length = 2}}});
  logits = decoding.next({{1, 3, begin(5), 3}, {3, 3, begin(3), 2}, {0, 3, {0, 5, 5, 5}, 0}});
  EXPECT_LE(distance(row_of(logits, 0), expected(4)), 1e-5);
  EXPECT_LE(distance(row_of(logits, 1), expected(2)), 1e-5);
  EXPECT_LE(distance(row_of(logits, 2), other), 1e-5);
}

// Cross-attention where nothing below the queries is trained, or nothing below the keys and values: the gradients that
// are still wanted are the same.
TEST(EncoderDecoder, GradientsDoNotDependOnWhatIsFrozen) {
  const std::vector<std::string> tables = {"source_embedding", "target_embedding"};
  std::vector<std::string> encoder = tables, queries = tables;
  for (const char* name : {"encoder", "decoder.layers.0.cross_kv", "decoder.layers.1.cross_kv"})
    encoder.emplace_back(name);
  for (const char* name : {"attention", "qkv", "cross_norm", "cross_q"})
    queries.push_back(fmt::format("decoder.layers.0.{}", name));
  const EncoderDecoderConfig config = tiny_encoder_decoder("rotary");
  const StepBatch pairs = step_of_pairs();
  for (const std::vector<std::string>& frozen : {encoder, queries}) {
    for (const Backend backend : {Backend::cpu, Backend::reference}) {
      for (const int64_t checkpoint_every : {0, 1}) {
        PairsJob whole(config, {.checkpoint_every = checkpoint_every, .backend = backend});
        PairsJob part(
            config,
            {.checkpoint_every = checkpoint_every, .backend = backend, .device = &guarded_device(), .frozen = frozen});
        EXPECT_EQ(part.run(pairs), whole.run(pairs));
        EXPECT_LT(part.parameters().trained_count(), whole.parameters().trained_count());
        for (const auto& parameter : part.parameters().all()) {
          if (!parameter->spec.trained) continue;
          const Parameter& same = *whole.parameters().find(parameter->spec.name);
          EXPECT_EQ(values_of(guarded_device(), parameter->gradient), values_of(cpu_device(), same.gradient))
              << parameter->spec.name;
        }
      }
    }
  }
}

TEST(EncoderDecoder, KnowsTheLengthsOfBothSets) {
  const Pairs pairs(kSourceLengths, kTargetLengths);
  const BatchLayout layout = pair_layout();
  EXPECT_EQ(longest_of_sets(pairs), (std::vector<int64_t>{9, 9}));
  EXPECT_EQ(layout.least_rows(longest_of_sets(pairs)), 12);
  const std::vector<RowMeans> means = row_means(pairs, layout);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_DOUBLE_EQ(means[0].rows, 25.0 / 5);
  EXPECT_DOUBLE_EQ(means[1].rows, 22.0 / 5);
  EXPECT_DOUBLE_EQ(means[1].attended, (16.0 + 36 + 1 + 81 + 4) / 22);
  EXPECT_FALSE(means[1].derived);

  // Products of the encoder's rows, of the decoder's, and attention between them.
  const EncoderDecoderConfig config = tiny_encoder_decoder("vanilla");
  const double tokens = means[0].rows + means[1].rows, sum = tokens * model_flop_per_token(config, means);
  const double D = 16, F = 24, V = kPairVocabulary, source = means[0].rows, target = means[1].rows;
  const double encoder = 2 * 6 * source * (4 * D * D + 2 * D * F + 2 * D * means[0].attended);
  const double decoder = 2 * 6 * target * (4 * D * D + 2 * D * F + D * means[1].attended);
  const double cross = 2 * 6 * (target * 2 * D * D + source * 2 * D * D + target * 2 * D * means[0].attended);
  EXPECT_NEAR(sum, encoder + decoder + cross + 6 * target * V * D, 1e-9 * sum);
}

TEST(EncoderDecoder, IsEvaluatedByTheSamePath) {
  PairsJob job(without_dropout(tiny_encoder_decoder("vanilla")));
  const StepBatch pairs = step_of_pairs();
  const double loss = job.run(pairs) * static_cast<double>(pairs.valid_tokens);
  ForwardRun run(job.parameters(), {.rows = pair_layout().capacities(pair_layout().capacity(12, kLongestOfPairs))},
                 [&](Tape& tape) { return job.model().loss(tape, {}).sums; });
  Ledger ledger;
  double sum = 0;
  int64_t micro_batches = 0;
  const int64_t rows = run.forward(Pairs(kSourceLengths, kTargetLengths), ledger, [&](const MicroBatch&) {
    std::vector<float> sums;
    run.read(sums);
    sum += sums[0];
    ++micro_batches;
  });
  EXPECT_NEAR(sum, loss, 1e-5 * loss);
  EXPECT_GE(micro_batches, 3);
  EXPECT_EQ(rows, 25 + 22);
}

}  // namespace
}  // namespace brisk
