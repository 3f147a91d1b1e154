// Generation: with its cache a decoder says what it says without, and sampling does what the options promise.
#include "infer/answer/generate.h"

#include <gtest/gtest.h>

#include <set>

#include "infer/forward/forward_run.h"
#include "support/micro_batches.h"
#include "support/numeric.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

// A decoder with enough life in it (matrices of deviation 0.2) that a wrong key or position shows in the logits.
class LivelyDecoder {
 public:
  explicit LivelyDecoder(const DecoderConfig& config, DType compute_type = DType::f32)
      : options_(tiny_options(config)) {
    options_.compute_type = compute_type;
    engine_ = std::make_unique<Engine>(options_);
    engine_->initialise(7);
    for (const auto& parameter : engine_->parameters().all()) {
      if (!parameter->spec.decays) continue;
      std::vector<float> values = values_of(cpu_device(), parameter->master);
      for (float& value : values) value *= 10;
      put_values(cpu_device(), parameter->master, values);
    }
    engine_->parameters_changed();
  }

  const Decoder& decoder() const { return as_decoder(engine_->model()); }
  const ParameterStore& parameters() const { return engine_->parameters(); }
  int64_t vocabulary() const { return decoder_of(options_).vocab_size; }

  // [N, V] of whole sequences, without a cache.
  std::vector<float> logits(const std::vector<std::vector<TokenId>>& texts) const {
    MicroBatch batch;
    for (const std::vector<TokenId>& text : texts) testing::add_sequence(batch.sets[0], text);
    ForwardRun run(parameters(), {.rows = {options_.capacity}}, [&](Tape& tape) { return decoder().logits(tape); });
    Ledger ledger;
    run.forward(batch, ledger);
    std::vector<float> logits;
    run.read(logits);
    return logits;
  }

  TokenId likeliest_next(const std::vector<TokenId>& text) const {
    const std::vector<float> all = logits({text});
    const auto last = all.end() - vocabulary();
    return static_cast<TokenId>(std::max_element(last, all.end()) - last);
  }

 private:
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

// Feeds several sequences piece by piece through a cache of `capacity` positions each.
class CachedRun {
 public:
  CachedRun(const LivelyDecoder& model, int64_t sequences, int64_t capacity, DType type, Backend backend)
      : sequences_(sequences),
        run_(model.parameters(), {.rows = {{sequences * capacity, sequences, capacity}}, .backend = backend},
             [&](Tape& tape) { return model.decoder().next_token_logits(tape); }),
        ranges_(cpu_device(), 2 * sequences * size_of(DType::i32)),
        filled_(static_cast<size_t>(sequences), 0) {
    const DecoderConfig& config = model.decoder().config();
    const int64_t width = config.num_kv_heads * config.head_width(), rows = sequences * capacity;
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      for (std::vector<Tensor>* side : {&cache_.keys, &cache_.values}) {
        memory_.emplace_back(cpu_device(), rows * width * size_of(type));
        side->push_back(matrix(memory_.back().data(), type, rows, width));
      }
    }
    cache_.capacity = capacity;
    cache_.begin = static_cast<const int32_t*>(ranges_.data());
    cache_.end = cache_.begin + sequences;
  }

  // [S, V] after the pieces, one a sequence.
  std::vector<float> feed(const std::vector<std::vector<TokenId>>& pieces) {
    MicroBatch batch;
    MicroBatch::Set& rows = batch.sets[0];
    std::vector<int32_t> ranges(static_cast<size_t>(2 * sequences_));
    cache_.longest = 0;
    for (size_t s = 0; s < pieces.size(); ++s) {
      for (const TokenId token : pieces[s]) {
        rows.tokens.push_back(token);
        rows.position.push_back(filled_[s]++);
        rows.sequence.push_back(static_cast<int32_t>(s));
      }
      rows.end_sequence(rows.tokens.size());
      ranges[s] = static_cast<int32_t>(static_cast<int64_t>(s) * cache_.capacity);
      ranges[s + pieces.size()] = ranges[s] + filled_[s];
      cache_.longest = std::max(cache_.longest, static_cast<int64_t>(filled_[s]));
    }
    cpu_device().copy_in(ranges_.data(), ranges.data(), ranges_.bytes());
    Ledger ledger;
    run_.forward(batch, ledger, &cache_);
    std::vector<float> logits;
    run_.read(logits);
    return logits;
  }

 private:
  int64_t sequences_;
  ForwardRun run_;
  Buffer ranges_;
  std::vector<Buffer> memory_;
  KeyValueCache cache_;
  std::vector<int32_t> filled_;
};

class Generation : public ::testing::TestWithParam<Shape> {
 protected:
  Threads threads_{1};
};
INSTANTIATE_TEST_SUITE_P(Decoder, Generation, ::testing::ValuesIn(both_shapes()),
                         [](const auto& info) { return info.param.name; });

std::vector<TokenId> some_text(size_t length, uint64_t seed) {
  std::vector<TokenId> text;
  for (size_t i = 0; i < length; ++i) {
    text.push_back(static_cast<TokenId>(61 * random_uniform(random_key({seed}), static_cast<uint64_t>(i))));
  }
  return text;
}

// Two texts of different lengths, first in pieces of several tokens, then token by token.
void compare_with_full_recomputation(const Shape& shape, DType type, Backend backend, double tolerance) {
  const LivelyDecoder model(shape.config, type);
  const std::vector<std::vector<TokenId>> texts = {some_text(13, 1), some_text(20, 2)};
  const std::vector<float> whole = model.logits(texts);
  CachedRun run(model, 2, 24, type, backend);
  std::vector<size_t> fed = {0, 0};
  for (const std::vector<size_t>& lengths :
       std::vector<std::vector<size_t>>{{3, 9}, {1, 1}, {4, 5}, {1, 1}, {1, 1}, {2, 1}, {1, 2}}) {
    std::vector<std::vector<TokenId>> pieces;
    for (size_t s = 0; s < 2; ++s) {
      const auto begin = texts[s].begin() + static_cast<std::ptrdiff_t>(fed[s]);
      pieces.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[s]));
      fed[s] += lengths[s];
    }
    const std::vector<float> logits = run.feed(pieces);
    for (size_t s = 0; s < 2; ++s) {
      const auto V = static_cast<size_t>(model.vocabulary());
      const size_t row = (s == 0 ? 0 : texts[0].size()) + fed[s] - 1;
      EXPECT_LE(distance(std::span(logits).subspan(s * V, V), std::span(whole).subspan(row * V, V)), tolerance)
          << "sequence " << s << " after " << fed[s] << " tokens";
    }
  }
  EXPECT_EQ(fed, (std::vector<size_t>{13, 20}));
}

TEST_P(Generation, GivesTheSameLogitsWithACacheAsWithoutOnEveryInstructionSet) {
  for_each_isa([&](Isa) {
    compare_with_full_recomputation(GetParam(), DType::f32, Backend::cpu, 1e-5);
    compare_with_full_recomputation(GetParam(), DType::bf16, Backend::cpu, 2e-2);
  });
  compare_with_full_recomputation(GetParam(), DType::f32, Backend::reference, 1e-5);
}

// The greedy text of a decoder that reads everything again for each token; a text longer than the model's length goes
// on from its last half, as Generator's does.
std::vector<TokenId> recomputed_text(const LivelyDecoder& model, std::vector<TokenId> text, int64_t tokens) {
  const auto capacity = static_cast<size_t>(model.decoder().config().max_length);
  std::vector<TokenId> seen = {0};
  seen.insert(seen.end(), text.begin(), text.end());
  for (int64_t i = 0; i < tokens; ++i) {
    if (seen.size() > capacity) {
      seen.assign(text.end() - static_cast<std::ptrdiff_t>(std::min(text.size(), capacity / 2)), text.end());
    }
    text.push_back(model.likeliest_next(seen));
    seen.push_back(text.back());
  }
  return text;
}

TEST_P(Generation, GreedyTextIsThatOfFullRecomputationBeyondTheModelsLength) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  for (const std::string prompt : {"", "ABC", "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG"}) {  // 43 > 24
    std::string streamed;
    const Generated result = generator.generate(prompt, {.max_tokens = 60, .temperature = 0, .stop_at_end = false},
                                                [&](std::string_view piece) { streamed += piece; });
    std::vector<TokenId> ids;
    tokenizer.encode(prompt, ids);
    EXPECT_EQ(result.ids, recomputed_text(model, ids, 60)) << prompt;
    EXPECT_EQ(result.prompt_tokens, static_cast<int64_t>(prompt.size()));
    EXPECT_EQ(result.new_tokens, 60);
    EXPECT_FALSE(result.ended);
    EXPECT_EQ(result.text, tokenizer.decode(result.ids));
    EXPECT_EQ(result.text.substr(result.text.size() - streamed.size()), streamed);
  }
}

TEST_P(Generation, DependsOnTheSeedAlone) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  const auto text = [&](uint64_t seed) {
    return generator.generate("A", {.max_tokens = 40, .temperature = 1.5, .seed = seed, .stop_at_end = false}).ids;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST_P(Generation, StopsAtTheEndOfTheDocument) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  int ended = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Generated result = generator.generate("A", {.max_tokens = 200, .temperature = 3, .seed = seed});
    EXPECT_EQ(std::count(result.ids.begin(), result.ids.end(), 0), 0);
    EXPECT_EQ(result.ended, result.new_tokens < 200);
    ended += result.ended ? 1 : 0;
  }
  EXPECT_GT(ended, 0);
}

TEST_P(Generation, GoesOnPastTheEndOfTheDocumentIfItIsIgnored) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Generated result =
        generator.generate("A", {.max_tokens = 100, .temperature = 3, .seed = seed, .ignore_end = true});
    EXPECT_EQ(result.new_tokens, 100);
    EXPECT_FALSE(result.ended);
    EXPECT_EQ(std::count(result.ids.begin(), result.ids.end(), 0), 0);
  }
}

TEST_P(Generation, EndsBeforeAStopString) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  const GenerateOptions options{.max_tokens = 40, .temperature = 1, .seed = 5, .ignore_end = true};
  const std::string whole = generator.generate("ABC", options).text;
  for (const size_t at : {3, 10, 38}) {
    const std::string stop = whole.substr(at, 3);
    const size_t first = whole.find(stop, 3);
    GenerateOptions stopping = options;
    stopping.stop = {"#", stop, ""};
    std::string streamed;
    const Generated result = generator.generate("ABC", stopping, [&](std::string_view piece) { streamed += piece; });
    EXPECT_EQ(result.text, whole.substr(0, first));
    EXPECT_EQ(streamed, whole.substr(3, first - 3)) << "nothing of the stop string is shown";
    EXPECT_EQ(result.stopped_at, stop);
    EXPECT_LE(result.new_tokens, 40);
  }
  GenerateOptions never = options;
  never.stop = {whole.substr(35, 5) + "#"};
  std::string streamed;
  const Generated result = generator.generate("ABC", never, [&](std::string_view piece) { streamed += piece; });
  EXPECT_EQ(result.text, whole);
  EXPECT_EQ("ABC" + streamed, whole) << "what was held back is shown at the end";
  EXPECT_EQ(result.stopped_at, "");
}

TEST_P(Generation, SaysWhatOfALongTextIsLost) {
  const LivelyDecoder model(GetParam().config);
  const LetterTokenizer tokenizer;
  Generator generator(model.decoder(), model.parameters(), tokenizer);
  const Generated fits = generator.generate("ABC", {.max_tokens = 5, .ignore_end = true});
  EXPECT_EQ(fits.prompt_dropped + fits.restarts, 0);
  EXPECT_EQ(fits.context, 24);
  const Generated dropped = generator.generate(std::string(43, 'A'), {.max_tokens = 5, .ignore_end = true});
  EXPECT_EQ(dropped.prompt_dropped, 43 - 12);
  EXPECT_EQ(generator.generate("ABC", {.max_tokens = 60, .ignore_end = true}).restarts, 3);
}

// Sampling on logits made by hand: probabilities 0.5, 0.25, 0.125, 0.125 at temperature 1.

std::vector<float> four_logits() { return {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)}; }

std::vector<int> counts_of(const GenerateOptions& options, const std::vector<TokenId>& text = {}) {
  std::vector<int> counts(4);
  for (int i = 0; i < 1000; ++i) {
    std::vector<float> logits = four_logits();
    ++counts[static_cast<size_t>(sample_token(logits, text, options, (i + 0.5) / 1000))];
  }
  return counts;
}

TEST(SampleToken, DrawsByProbabilityAtTemperatureOne) {
  EXPECT_EQ(counts_of({.temperature = 1}), (std::vector<int>{125, 500, 125, 250}));
}

TEST(SampleToken, TemperatureZeroIsTheLikeliest) {
  EXPECT_EQ(counts_of({.temperature = 0}), (std::vector<int>{0, 1000, 0, 0}));
}

TEST(SampleToken, TemperatureOneHalfSquaresTheProbabilities) {
  // 1/64, 1/4, 1/64, 1/16: a sum of 22/64.
  const std::vector<int> counts = counts_of({.temperature = 0.5});
  EXPECT_NEAR(counts[1], 1000 * 16.0 / 22, 1);
  EXPECT_NEAR(counts[3], 1000 * 4.0 / 22, 1);
  EXPECT_NEAR(counts[0], 1000 * 1.0 / 22, 1);
}

TEST(SampleToken, TopKKeepsTheLikeliestAndTheirProportions) {
  const std::vector<int> counts = counts_of({.temperature = 1, .top_k = 2});
  EXPECT_NEAR(counts[1], 667, 1);
  EXPECT_NEAR(counts[3], 333, 1);
  EXPECT_EQ(counts[0] + counts[2], 0);
  EXPECT_EQ(counts_of({.temperature = 1, .top_k = 1}), (std::vector<int>{0, 1000, 0, 0}));
  EXPECT_EQ(counts_of({.temperature = 1, .top_k = 9}), counts_of({.temperature = 1, .top_k = 4}));
}

TEST(SampleToken, TopPKeepsTheFewestThatReachP) {
  EXPECT_EQ(counts_of({.temperature = 1, .top_p = 0.4}), (std::vector<int>{0, 1000, 0, 0}));
  const std::vector<int> two = counts_of({.temperature = 1, .top_p = 0.6});
  EXPECT_NEAR(two[1], 667, 1);
  EXPECT_NEAR(two[3], 333, 1);
  const std::vector<int> three = counts_of({.temperature = 1, .top_p = 0.8});
  EXPECT_NEAR(three[1], 571, 1);
  EXPECT_NEAR(three[0], 143, 1);  // of two equally likely ones the first
  EXPECT_EQ(three[2], 0);
  EXPECT_EQ(counts_of({.temperature = 1, .top_p = 0}), (std::vector<int>{0, 1000, 0, 0}));
}

TEST(SampleToken, TopPCountsWithinTopK) {
  // Of the two kept the first has 2/3: enough for 0.6 though it has only 0.5 of all.
  EXPECT_EQ(counts_of({.temperature = 1, .top_k = 2, .top_p = 0.6}), (std::vector<int>{0, 1000, 0, 0}));
}

TEST(SampleToken, MinPKeepsThoseNearlyAsLikelyAsTheLikeliest) {
  // Relative to 0.5 the others have 0.25, 0.5 and 0.25.
  const std::vector<int> two = counts_of({.temperature = 1, .min_p = 0.4});
  EXPECT_NEAR(two[1], 667, 1);
  EXPECT_NEAR(two[3], 333, 1);
  EXPECT_EQ(two[0] + two[2], 0);
  const std::vector<int> all = counts_of({.temperature = 1, .min_p = 0.2});
  EXPECT_NEAR(all[1], 500, 1);
  EXPECT_NEAR(all[0], 125, 1);
  EXPECT_EQ(counts_of({.temperature = 1, .min_p = 1}), (std::vector<int>{0, 1000, 0, 0}));
  EXPECT_NEAR(counts_of({.temperature = 0.5, .min_p = 0.3})[1], 1000, 1) << "the temperature comes first: 1/4 is left";
}

TEST(SampleToken, MinPAndTopPKeepWhatBothKeep) {
  // top_p 0.8 keeps three, min_p 0.4 two of them.
  const std::vector<int> counts = counts_of({.temperature = 1, .top_p = 0.8, .min_p = 0.4});
  EXPECT_NEAR(counts[1], 667, 1);
  EXPECT_NEAR(counts[3], 333, 1);
  EXPECT_EQ(counts_of({.temperature = 1, .top_p = 0.4, .min_p = 0.1}), (std::vector<int>{0, 1000, 0, 0}));
}

TEST(SampleToken, RepetitionPenaltyMakesATokenInTheTextLessLikelyOnceHoweverOftenItStandsThere) {
  // These logits are negative: times the penalty. ln 0.5 * 2 = ln 0.25.
  const std::vector<int> once = counts_of({.temperature = 1, .repetition_penalty = 2}, {1});
  const std::vector<int> often = counts_of({.temperature = 1, .repetition_penalty = 2}, {1, 1, 1});
  EXPECT_EQ(once, often);
  EXPECT_NEAR(once[1], 1000 * 0.25 / 0.75, 1);
  EXPECT_NEAR(once[3], 1000 * 0.25 / 0.75, 1);
  // Positive ones are divided: 4 / 2 < 3.
  std::vector<float> positive = {4, 3};
  EXPECT_EQ(sample_token(positive, std::vector<TokenId>{0}, {.temperature = 0, .repetition_penalty = 2}, 0.5), 1);
  EXPECT_EQ(positive, (std::vector<float>{2, 3}));
}

}  // namespace
}  // namespace brisk
