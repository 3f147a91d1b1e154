// Translation: what many texts give in one batch, with caches that beams share and copy, is what each gives alone, computed
// anew for every token.
#include "infer/answer/translate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "infer/answer/beam_search.h"
#include "infer/forward/forward_run.h"
#include "models/encoder_decoder.h"
#include "ops/optimizer/parameters.h"
#include "support/numeric.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk {
namespace {

using namespace brisk::testing;

constexpr int64_t kLongest = 14;

// An untrained model with enough life in it that its texts differ.
class LivelyTranslator {
 public:
  explicit LivelyTranslator(EncoderDecoderConfig::Positions positions = EncoderDecoderConfig::Positions::sinusoidal) {
    const std::vector<std::string_view> texts = {"a b c d e f"};
    tokenizer_ = train_bpe(texts, {.vocab_size = 260, .kind = BpeKind::text_to_text}).tokenizer;
    EncoderDecoderConfig config;
    config.source_vocab_size = config.target_vocab_size = tokenizer_->vocab_size() + 3;  // padded
    config.encoder = config.decoder = {.d_model = 16,
                                       .num_layers = 2,
                                       .num_heads = 2,
                                       .head_width = 8,
                                       .d_ff = 24,
                                       .max_length = kLongest,
                                       .types = 0};
    config.positions = positions;
    config.tie_head = config.share_embeddings = false;
    model_ = std::make_unique<EncoderDecoder>(config, store_);
    store_.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    store_.initialise(11);
    for (const auto& parameter : store_.all()) {
      if (!parameter->spec.decays) continue;
      std::vector<float> values = values_of(cpu_device(), parameter->master);
      for (float& value : values) value *= 12;
      if (parameter->spec.name == "head.weight") {  // which would often write what it begins with
        float* start = values.data() + text().frame.start * config.decoder.d_model;
        for (int64_t i = 0; i < config.decoder.d_model; ++i) start[i] *= 3;
      }
      put_values(cpu_device(), parameter->master, values);
    }
    refresh_compute_copies(store_);
  }

  Translator translator() const { return {*model_, store_, text()}; }
  TranslationText text() const { return {*tokenizer_, *tokenizer_, pair_frame_of(*tokenizer_, *tokenizer_)}; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // Beam search with everything computed anew for each token of each beam.
  std::vector<BeamSearch::Found> plain_search(const std::string& source, const BeamOptions& options,
                                              int64_t max_tokens) const {
    const PairFrame frame = text().frame;
    std::vector<TokenId> tokens;
    tokenizer_->encode(source, tokens);
    const std::vector<TokenId> rows = frame.source(tokens, kLongest);
    BeamSearch search(options, frame.end, max_tokens);
    while (!search.is_done()) {
      std::vector<float> all;
      for (const BeamSearch::Running& running : search.running()) {
        std::vector<TokenId> target = {frame.start};
        target.insert(target.end(), running.tokens.begin(), running.tokens.end());
        std::vector<float> next = next_log_probabilities(rows, target);
        next[static_cast<size_t>(frame.start)] = -std::numeric_limits<float>::infinity();  // comes once
        all.insert(all.end(), next.begin(), next.end());
      }
      search.advance(all, tokenizer_->vocab_size());
    }
    return search.found();
  }

  std::vector<float> next_log_probabilities(const std::vector<TokenId>& source,
                                            const std::vector<TokenId>& target) const {
    MicroBatch batch;
    batch.sets.resize(2);
    append_rows(batch.sets[0], source, {}, 0);
    append_rows(batch.sets[1], target, std::vector<TokenId>(target.size(), 0), 0);
    ForwardRun run(store_, {.rows = {{kLongest, 1, kLongest}, {kLongest, 1, kLongest}}},
                   [&](Tape& tape) { return model_->logits(tape); });
    Ledger ledger;
    run.forward(batch, ledger);
    std::vector<float> logits;
    run.read(logits);
    const auto vocabulary = static_cast<std::ptrdiff_t>(model_->target_vocab_size());
    std::vector<float> last(logits.end() - vocabulary, logits.end());
    double sum = 0;
    for (const float logit : last) sum += std::exp(static_cast<double>(logit));
    for (float& logit : last) logit -= static_cast<float>(std::log(sum));
    return last;
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  ParameterStore store_;
  std::unique_ptr<EncoderDecoder> model_;
};

std::vector<Translated> answers_of(Translator translator, const std::vector<std::string>& texts,
                                   const TranslateOptions& options) {
  std::vector<Translated> answers;
  translator.translate(texts, options, [&](size_t index, Translated answer) {
    EXPECT_EQ(index, answers.size()) << "in the order of the texts";
    answers.push_back(std::move(answer));
  });
  return answers;
}

const std::vector<std::string> kTexts = {"abc", "a", "fedcba", "bb", "abcdefabcdef", "cab"};

TEST(Translator, FindsWithCachesAndInOneBatchWhatEachTextHasAlone) {
  using Positions = EncoderDecoderConfig::Positions;
  for (const Positions positions : {Positions::sinusoidal, Positions::learned, Positions::relative}) {
    const LivelyTranslator model(positions);
    for (const int64_t beams : {1, 2, 4}) {
      for (const double penalty : {0.0, 1.0}) {
        const TranslateOptions options{.beam = beams, .length_penalty = penalty, .n_best = beams, .max_tokens = 8};
        const std::vector<Translated> answers = answers_of(model.translator(), kTexts, options);
        ASSERT_EQ(answers.size(), kTexts.size());
        for (size_t i = 0; i < kTexts.size(); ++i) {
          const BeamOptions plain{beams, penalty, beams == 1 ? EarlyStopping::first : EarlyStopping::heuristic};
          const auto found = model.plain_search(kTexts[i], plain, 8);
          ASSERT_EQ(answers[i].best.size(), found.size()) << kTexts[i];
          for (size_t place = 0; place < found.size(); ++place) {
            EXPECT_EQ(answers[i].best[place].text, model.tokenizer().decode(found[place].tokens))
                << kTexts[i] << ", " << beams << " beams, place " << place;
            EXPECT_NEAR(answers[i].best[place].score, found[place].score, 1e-4);
            EXPECT_EQ(answers[i].best[place].ended, found[place].ended);
          }
        }
      }
    }
  }
}

TEST(Translator, AnswersEmptyAndBlankTextsAndThoseOfOneToken) {
  const LivelyTranslator model;
  const std::vector<Translated> answers = answers_of(model.translator(), {"", "a", "  \t", "b", ""}, {.beam = 2});
  ASSERT_EQ(answers.size(), 5u);
  for (const size_t empty : {0, 2, 4}) {
    EXPECT_EQ(answers[empty].parts, 0);
    ASSERT_EQ(answers[empty].best.size(), 1u);
    EXPECT_EQ(answers[empty].best[0].text, "");
  }
  EXPECT_EQ(answers[1].source_tokens, 1);
  EXPECT_GT(answers[3].best[0].tokens, 0);
}

TEST(Translator, DividesWhatIsLongerThanTheModelReads) {
  const LivelyTranslator model;
  const std::string text = "abc def. abc fed cab";
  const auto parts = source_parts(text, model.tokenizer(), kLongest - 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(model.tokenizer().decode(parts[0]), "abc def.") << "after the end of a sentence";
  EXPECT_EQ(model.tokenizer().decode(parts[1]), "abc fed cab");
  const std::vector<Translated> answers =
      answers_of(model.translator(), {text, "abc def.", "abc fed cab"}, {.beam = 2, .max_tokens = 6});
  EXPECT_EQ(answers[0].parts, 2);
  EXPECT_EQ(answers[0].best[0].text, answers[1].best[0].text + " " + answers[2].best[0].text);
  EXPECT_EQ(answers[0].source_tokens, answers[1].source_tokens + answers[2].source_tokens);
}

TEST(SourceParts, LoseNothing) {
  const LivelyTranslator model;
  for (const std::string text : {"abcdefabcdefabcdefabcdef", "aa bb cc dd ee ff aa bb", "a. b. c. d. e. f. g. h. i.",
                                 "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\xE2\x82\xAC\xE2\x82\xAC\xF0\x9F\x98\x80", "abc"}) {
    for (const int64_t most : {4, 5, 7, 100}) {
      std::string all;
      for (const std::vector<TokenId>& part : source_parts(text, model.tokenizer(), most)) {
        EXPECT_FALSE(part.empty());
        EXPECT_LE(std::ssize(part), most);
        all += model.tokenizer().decode(part);
      }
      std::string expected;
      for (const char c : text) expected += c == ' ' ? "" : std::string(1, c);
      std::erase(all, ' ');
      EXPECT_EQ(all, expected) << most;
    }
  }
  EXPECT_TRUE(source_parts("", model.tokenizer(), 5).empty());
  EXPECT_TRUE(source_parts(" \n", model.tokenizer(), 5).empty());
}

TEST(Translator, DrawsTheSameTextsHoweverTheyAreHandedOver) {
  const LivelyTranslator model;
  const TranslateOptions options{.n_best = 3, .max_tokens = 8, .sample = true, .seed = 5};
  const std::vector<Translated> all = answers_of(model.translator(), kTexts, options);
  Translator one_by_one = model.translator();
  std::vector<Translated> answers;
  for (const std::string& text : kTexts) {
    one_by_one.translate(std::span(&text, 1), options,
                         [&](size_t, Translated answer) { answers.push_back(std::move(answer)); });
  }
  std::set<std::string> different;
  for (size_t i = 0; i < kTexts.size(); ++i) {
    ASSERT_EQ(all[i].best.size(), 3u);
    for (size_t place = 0; place < 3; ++place) {
      EXPECT_EQ(all[i].best[place].text, answers[i].best[place].text);
      different.insert(all[i].best[place].text);
    }
  }
  EXPECT_GT(different.size(), kTexts.size());
  TranslateOptions other = options;
  other.seed = 6;
  EXPECT_NE(answers_of(model.translator(), kTexts, other)[0].best[0].text, all[0].best[0].text);
}

TEST(Translator, RefusesAModelThatHasNoRoomForAWord) {
  const LivelyTranslator model;
  EncoderDecoderConfig config;
  config.source_vocab_size = config.target_vocab_size = model.tokenizer().vocab_size();
  config.encoder = config.decoder = {.d_model = 8, .num_layers = 1, .num_heads = 1, .head_width = 8, .d_ff = 8};
  config.encoder.max_length = 1;
  ParameterStore store;
  const EncoderDecoder tiny(config, store);
  const std::string message = test::message_of<UserError>([&] { Translator(tiny, store, model.text()); });
  EXPECT_TRUE(test::has(message, "texts of at most 1 tokens")) << message;
}

TEST(Translator, EndsAtTheTokensThatAreAllowed) {
  const LivelyTranslator model;
  for (const Translated& answer : answers_of(model.translator(), kTexts, {.beam = 1, .max_tokens = 1})) {
    EXPECT_EQ(answer.best[0].tokens, 1);
  }
}

}  // namespace
}  // namespace brisk
