#include "infer/answer/translate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/text/unicode.h"
#include "data/read/pieces.h"
#include "infer/answer/beam_search.h"
#include "infer/answer/generate.h"
#include "infer/forward/decoding_cache.h"
#include "infer/forward/forward_run.h"
#include "ops/tape/tape_ops.h"

namespace brisk {

namespace {

// Texts so far that one step of the decoder goes on with: beyond these a step takes as much longer as it does more.
constexpr int64_t kSlotsOnCpu = 256, kSlotsOnGpu = 2048;
constexpr int64_t kMostCacheBytes = int64_t{256} << 20, kMostCacheBytesOnGpu = int64_t{8} << 30;
constexpr int64_t kSourceRowsOnCpu = 4096, kSourceRowsOnGpu = 65536;
constexpr int64_t kCapacityStep = 64;  // tokens of a translation

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view without_spaces_around(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Where a part may end: after a space, and there also whether a sentence ends before it.
struct Cut {
  size_t at;
  bool ends_sentence;
};
std::vector<Cut> cuts_of(std::string_view text) {
  std::vector<Cut> cuts;
  for (size_t at = 1; at < text.size(); ++at) {
    if (!is_space(text[at - 1]) || is_space(text[at])) continue;
    size_t end = at;
    while (end > 0 && is_space(text[end - 1])) --end;
    const std::string_view before = text.substr(0, end);
    const bool ends = before.ends_with('.') || before.ends_with('!') || before.ends_with('?') ||
                      before.ends_with("\u2026") || before.ends_with('\"');
    cuts.push_back({at, ends});
  }
  return cuts;
}

// The texts so far of one sentence, whose next tokens are wanted.
class TextSearch {
 public:
  virtual ~TextSearch() = default;
  virtual int64_t count() const = 0;
  virtual TokenId last_token(int64_t i) const = 0;
  virtual int64_t parent(int64_t i) const = 0;  // before the last advance()
  // [count, vocabulary], of which the first `known` tokens may be taken.
  virtual void advance(std::span<const float> log_probabilities, int64_t known) = 0;
  virtual bool is_done() const = 0;
  virtual std::vector<BeamSearch::Found> found() = 0;  // the best first
};

class BeamTexts final : public TextSearch {
 public:
  BeamTexts(const BeamOptions& options, TokenId end, int64_t max_length, int64_t forced)
      : search_(options, end, max_length, forced) {}
  int64_t count() const override { return std::ssize(search_.running()); }
  TokenId last_token(int64_t i) const override { return running(i).tokens.back(); }
  int64_t parent(int64_t i) const override { return running(i).parent; }
  void advance(std::span<const float> log_probabilities, int64_t known) override {
    search_.advance(log_probabilities, known);
  }
  bool is_done() const override { return search_.is_done(); }
  std::vector<BeamSearch::Found> found() override { return search_.found(); }

 private:
  const BeamSearch::Running& running(int64_t i) const { return search_.running()[static_cast<size_t>(i)]; }
  BeamSearch search_;
};

// Each drawn by itself.
class DrawnTexts final : public TextSearch {
 public:
  DrawnTexts(const TranslateOptions& options, uint64_t key, TokenId end, int64_t max_length)
      : options_(options), key_(key), end_(end), max_length_(max_length), texts_(static_cast<size_t>(options.n_best)) {
    for (size_t i = 0; i < texts_.size(); ++i) texts_[i].draw = i;
    sampling_.temperature = options.temperature;
    sampling_.top_k = options.top_k;
    sampling_.top_p = options.top_p;
    sampling_.min_p = options.min_p;
  }
  int64_t count() const override { return std::ssize(texts_); }
  TokenId last_token(int64_t i) const override { return texts_[static_cast<size_t>(i)].tokens.back(); }
  int64_t parent(int64_t i) const override { return texts_[static_cast<size_t>(i)].parent; }
  void advance(std::span<const float> log_probabilities, int64_t known) override {
    const size_t vocabulary = log_probabilities.size() / texts_.size();
    ++length_;
    std::vector<Text> running;
    for (size_t i = 0; i < texts_.size(); ++i) {
      Text& text = texts_[i];
      const std::span<const float> row = log_probabilities.subspan(i * vocabulary, static_cast<size_t>(known));
      std::vector<float> changed(row.begin(), row.end());
      const double draw = random_uniform(random_key({key_, text.draw}), static_cast<uint64_t>(length_));
      const TokenId token = sample_token(changed, text.tokens, sampling_, draw);
      text.log_probability += row[static_cast<size_t>(token)];
      const bool ends = token == end_;
      if (!ends) text.tokens.push_back(token);
      if (ends || length_ == max_length_) {
        const double score = text.log_probability / std::pow(static_cast<double>(length_), options_.length_penalty);
        found_.push_back({std::move(text.tokens), score, ends});
      } else {
        text.parent = static_cast<int64_t>(i);
        running.push_back(std::move(text));
      }
    }
    texts_ = std::move(running);
  }
  bool is_done() const override { return texts_.empty(); }
  std::vector<BeamSearch::Found> found() override {
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    return std::move(found_);
  }

 private:
  struct Text {
    std::vector<TokenId> tokens;
    double log_probability = 0;
    uint64_t draw = 0;
    int64_t parent = 0;
  };
  TranslateOptions options_;
  GenerateOptions sampling_;
  uint64_t key_;
  TokenId end_;
  int64_t max_length_, length_ = 0;
  std::vector<Text> texts_;
  std::vector<BeamSearch::Found> found_;
};

// Texts of one sentence that are computed side by side.
int64_t width_of(const TranslateOptions& options) { return options.sample ? options.n_best : options.beam; }

}  // namespace

TranslationText text_of(const TrainedModel& model) {
  return {*model.tokenizer, model.writes_with(),
          pair_frame_of(*model.tokenizer, model.writes_with(), model.job.model.first_token)};
}

std::vector<std::vector<TokenId>> source_parts(std::string_view text, const Tokenizer& tokenizer, int64_t most) {
  // Of a long text only so much is looked at for the next part: a token is rarely longer.
  constexpr int64_t kMostBytesOfToken = 32;
  std::vector<std::vector<TokenId>> parts;
  std::vector<TokenId> tokens;
  const auto fits = [&](std::string_view part) {
    tokens.clear();
    tokenizer.encode(without_spaces_around(part), tokens);
    return std::ssize(tokens) <= most;
  };
  for (text = without_spaces_around(text); !text.empty();) {
    const std::string_view window = text.substr(0, static_cast<size_t>(kMostBytesOfToken * most));
    const bool whole = window.size() == text.size();
    size_t end = window.size();
    if (!whole || !fits(window)) {
      // The longest beginning that fits and ends between words; after a sentence where one ends in its second half.
      const std::vector<Cut> cuts = cuts_of(window);
      const auto after =
          std::ranges::partition_point(cuts, [&](const Cut& cut) { return fits(window.substr(0, cut.at)); });
      end = after == cuts.begin() ? 0 : std::prev(after)->at;
      for (auto cut = after; cut != cuts.begin() && 2 * std::prev(cut)->at > end; --cut) {
        if (!std::prev(cut)->ends_sentence) continue;
        end = std::prev(cut)->at;
        break;
      }
    }
    if (end == 0) {  // a word that is longer than all that fits: its characters
      size_t begin = 0, stop = window.size();
      while (begin + 1 < stop) {
        const size_t middle = begin + (stop - begin) / 2;
        (fits(window.substr(0, middle)) ? begin : stop) = middle;
      }
      const auto is_inside = [&](size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
      };
      for (end = begin; end > 0 && is_inside(end);) --end;
      if (end == 0) ++end;  // a character of more tokens than fit
      if (end == 1) {
        while (is_inside(end)) ++end;
      }
    }
    fits(window.substr(0, end));
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(most)));
    if (!tokens.empty()) parts.push_back(tokens);
    text = without_spaces_around(text.substr(end));
  }
  return parts;
}

struct Translator::State {
  struct Size {
    int64_t slots = 0, capacity = 0;  // rows of a slot
    int64_t source_rows = 0, longest_source = 0;
  };
  Size size;
  ForwardRun encoder, decoder;
  DecodingCache cache;
  std::vector<float> log_probabilities;  // [S, V]

  State(const TextToTextModel& model, const ParameterStore& store, const Size& size, int64_t first_rows)
      : size(size),
        encoder(store,
                {.rows = {{size.source_rows, size.slots, size.longest_source}}, .backend = backend_of(store.device())},
                [&](Tape& tape) { return model.encode(tape); }),
        decoder(store,
                {.rows = {{size.slots * first_rows, size.slots, first_rows}}, .backend = backend_of(store.device())},
                [&](Tape& tape) {
                  const Value value = log_softmax(tape, model.next_token_logits(tape));
                  tape.read_back(value);
                  return value;
                }),
        cache(store, model, size.slots, size.capacity) {}
};

Translator::Translator(const TextToTextModel& model, const ParameterStore& store, TranslationText text)
    : model_(model), store_(store), text_(std::move(text)) {
  const int64_t read = text_.frame.source_rows(1), written = std::ssize(text_.frame.target_prefix) + 1;
  if (model.max_source_length() >= read && model.max_target_length() >= written) return;
  user_error(
      "the model reads texts of at most {} tokens and writes {}: with special tokens a word takes {} and {}; use a model of "
      "longer texts (model.source_context, model.context)",
      model.max_source_length(), model.max_target_length(), read, written);
}
Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;

int64_t Translator::most_tokens(const Sentence& sentence, const TranslateOptions& options) const {
  const int64_t forced = std::ssize(text_.frame.target_prefix), most = model_.max_target_length() - forced;
  const int64_t usual = 3 * std::ssize(sentence.source) + 10;
  return std::clamp<int64_t>(options.max_tokens > 0 ? options.max_tokens : usual, 1, std::max<int64_t>(1, most));
}

void Translator::decode(std::span<Sentence> sentences, const TranslateOptions& options) {
  const PairFrame& frame = text_.frame;
  const int64_t width = width_of(options), forced = std::ssize(frame.target_prefix);
  State::Size size;
  int64_t rows = 0;
  for (const Sentence& sentence : sentences) {
    size.longest_source = std::max(size.longest_source, std::ssize(sentence.source));
    size.capacity = std::max(size.capacity, forced + most_tokens(sentence, options));
    rows += std::ssize(sentence.source);
  }
  size.capacity = round_up(size.capacity, kCapacityStep);
  size.slots = std::ssize(sentences) * width;
  size.source_rows = rows;
  if (!state_ || state_->size.slots < size.slots || state_->size.capacity < size.capacity ||
      state_->size.source_rows < size.source_rows || state_->size.longest_source < size.longest_source) {
    state_.reset();
    state_ = std::make_unique<State>(model_, store_, size, 1 + forced);
  }
  State& state = *state_;

  // A sentence and its texts so far.
  struct Active {
    Sentence* sentence;
    std::unique_ptr<TextSearch> search;
    std::vector<int64_t> slots;  // of its texts
    std::vector<int64_t> free;   // the others of its slots
    int64_t memory_begin, memory_end;
  };
  std::vector<Active> active;
  Ledger ledger;
  MicroBatch batch;
  MicroBatch::Set& source = batch.sets[0];
  for (size_t number = 0; Sentence & sentence : sentences) {
    const auto begin = static_cast<int64_t>(source.tokens.size());
    append_rows(source, sentence.source, {}, static_cast<int32_t>(active.size()));
    std::unique_ptr<TextSearch> search;
    if (options.sample) {
      search = std::make_unique<DrawnTexts>(options, random_key({options.seed, sentence.number, sentence.part}),
                                            frame.end, most_tokens(sentence, options));
    } else {
      // With one beam, the first text that ends is the likeliest token at each step.
      const BeamOptions beams{options.beam, options.length_penalty,
                              options.beam == 1 ? EarlyStopping::first : options.early_stopping};
      search = std::make_unique<BeamTexts>(beams, frame.end, most_tokens(sentence, options), forced);
    }
    Active& one = active.emplace_back(
        Active{&sentence, std::move(search), {}, {}, begin, static_cast<int64_t>(source.tokens.size())});
    for (int64_t i = 0; i < width; ++i) {
      const int64_t slot = static_cast<int64_t>(number) * width + i;
      (i < one.search->count() ? one.slots : one.free).push_back(slot);
    }
    ++number;
  }
  state.encoder.forward(batch, ledger);
  state.cache.read_memory(state.encoder.value());

  const int64_t known = std::min(model_.target_vocab_size(), text_.target.vocab_size());
  const auto vocabulary = static_cast<size_t>(model_.target_vocab_size());
  // What the decoder begins with is in no text, and a model may never have learned not to write it: Marian's padding token has
  // a logit of 0, which is more than those of most words. BART begins with the token that ends a text.
  const bool start_may_come_again = frame.start == frame.end;
  std::vector<DecodingCache::Sequence> sequences;
  std::vector<size_t> first_row;  // of each active sentence, in the log probabilities
  std::vector<DecodingCache::Copy> copies;
  std::vector<TokenId> first_tokens = {frame.start};
  first_tokens.insert(first_tokens.end(), frame.target_prefix.begin(), frame.target_prefix.end());
  for (int64_t length = std::ssize(first_tokens); !active.empty(); ++length) {
    throw_if_cancelled();
    const bool first = length == std::ssize(first_tokens);
    batch.clear();
    MicroBatch::Set& next = batch.sets[0];
    sequences.clear();
    first_row.clear();
    for (const Active& one : active) {
      first_row.push_back(sequences.size());
      for (int64_t i = 0; i < one.search->count(); ++i) {
        if (first) {
          next.tokens.insert(next.tokens.end(), first_tokens.begin(), first_tokens.end());
        } else {
          next.tokens.push_back(one.search->last_token(i));
        }
        const auto rows_of_text = static_cast<int32_t>(next.tokens.size() - next.position.size());
        for (int32_t row = 0; row < rows_of_text; ++row)
          next.position.push_back(static_cast<int32_t>(length) - rows_of_text + row);
        next.sequence.resize(next.tokens.size(), static_cast<int32_t>(sequences.size()));
        next.end_sequence(next.tokens.size());
        sequences.push_back({.slot = one.slots[static_cast<size_t>(i)],
                             .length = length,
                             .memory_begin = one.memory_begin,
                             .memory_end = one.memory_end});
      }
    }
    state.cache.begin(sequences);
    state.decoder.forward(batch, ledger, &state.cache.entries());
    state.decoder.read(state.log_probabilities);
    run_pieces(std::ssize(active), [&](int64_t i) {
      Active& one = active[static_cast<size_t>(i)];
      const std::span<float> rows = std::span(state.log_probabilities)
                                        .subspan(first_row[static_cast<size_t>(i)] * vocabulary,
                                                 static_cast<size_t>(one.search->count()) * vocabulary);
      for (size_t row = 0; !start_may_come_again && row < rows.size(); row += vocabulary) {
        rows[row + static_cast<size_t>(frame.start)] = -std::numeric_limits<float>::infinity();
      }
      one.search->advance(rows, known);
    });
    // The first text that goes on from another keeps its slot, the others get copies of it.
    copies.clear();
    for (Active& one : active) {
      if (one.search->is_done()) {
        for (BeamSearch::Found& found : one.search->found()) {
          tokens_ += std::ssize(found.tokens) + (found.ended ? 1 : 0);
          if (std::ssize(one.sentence->best) == options.n_best) continue;
          one.sentence->best.push_back({.text = text_.target.decode(found.tokens),
                                        .score = found.score,
                                        .tokens = std::ssize(found.tokens) + (found.ended ? 1 : 0),
                                        .ended = found.ended});
        }
        continue;
      }
      std::vector<int64_t> slots(static_cast<size_t>(one.search->count()), -1);
      std::vector<bool> goes_on(one.slots.size(), false);
      for (size_t i = 0; i < slots.size(); ++i) {
        const auto parent = static_cast<size_t>(one.search->parent(static_cast<int64_t>(i)));
        if (goes_on[parent]) continue;
        goes_on[parent] = true;
        slots[i] = one.slots[parent];
      }
      for (size_t i = 0; i < goes_on.size(); ++i) {
        if (!goes_on[i]) one.free.push_back(one.slots[i]);
      }
      for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i] >= 0) continue;
        const auto parent = static_cast<size_t>(one.search->parent(static_cast<int64_t>(i)));
        slots[i] = one.free.back();
        one.free.pop_back();
        copies.push_back({.from = one.slots[parent], .to = slots[i], .length = length});
      }
      one.slots = std::move(slots);
    }
    std::erase_if(active, [](const Active& one) { return one.search->is_done(); });
    state.cache.copy(copies);
  }
}

Translated Translator::joined(std::span<const Sentence> parts) const {
  Translated answer;
  answer.parts = std::ssize(parts);
  if (parts.empty()) {
    answer.best.emplace_back();
    return answer;
  }
  size_t most = 0;
  for (const Sentence& part : parts) {
    answer.source_tokens += std::ssize(part.source) - text_.frame.source_rows(0);
    most = std::max(most, part.best.size());
  }
  if (parts.size() == 1) {
    answer.best = parts.front().best;
    return answer;
  }
  for (size_t rank = 0; rank < most; ++rank) {
    Translated::Text& whole = answer.best.emplace_back();
    for (const Sentence& part : parts) {
      const Translated::Text& text = part.best[std::min(rank, part.best.size() - 1)];
      if (!whole.text.empty() && !text.text.empty()) whole.text += ' ';
      whole.text += text.text;
      whole.score += text.score;
      whole.tokens += text.tokens;
      whole.ended = whole.ended && text.ended;
    }
  }
  return answer;
}

void Translator::translate(std::span<const std::string> texts, const TranslateOptions& options,
                           const OnAnswer& on_answer) {
  BRISK_CHECK(options.n_best >= 1 && options.beam >= 1 && (options.sample || options.n_best <= options.beam),
              "{} of {} beams", options.n_best, options.beam);
  const PairFrame& frame = text_.frame;
  const int64_t limit = model_.max_source_length();
  std::vector<Sentence> sentences;  // in the order of the texts
  std::vector<size_t> first;        // of each text
  for (size_t i = 0; i < texts.size(); ++i) {
    first.push_back(sentences.size());
    for (const std::vector<TokenId>& tokens : source_parts(texts[i], text_.source, limit - frame.source_rows(0))) {
      const size_t part = sentences.size() - first.back();
      sentences.push_back({.number = texts_seen_ + i, .part = part, .source = frame.source(tokens, limit), .best = {}});
    }
  }
  first.push_back(sentences.size());
  texts_seen_ += texts.size();

  std::vector<size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sentences[a].source.size() > sentences[b].source.size(); });
  const bool on_gpu = store_.device().is_cuda();
  const int64_t most_rows = on_gpu ? kSourceRowsOnGpu : kSourceRowsOnCpu;
  std::vector<Sentence> group;
  for (size_t begin = 0; begin < order.size();) {
    group.clear();
    int64_t rows = 0, capacity = 0;
    size_t end = begin;
    for (; end < order.size(); ++end) {
      const Sentence& sentence = sentences[order[end]];
      rows += std::ssize(sentence.source);
      capacity =
          std::max(capacity, round_up(std::ssize(frame.target_prefix) + most_tokens(sentence, options), kCapacityStep));
      const int64_t bytes = DecodingCache::bytes(model_, store_.compute_type(), 1, capacity);
      const int64_t slots =
          std::min(on_gpu ? kSlotsOnGpu : kSlotsOnCpu, (on_gpu ? kMostCacheBytesOnGpu : kMostCacheBytes) / bytes);
      const bool fits = rows <= most_rows && (std::ssize(group) + 1) * width_of(options) <= slots;
      if (!group.empty() && !fits) break;
      group.push_back(std::move(sentences[order[end]]));
    }
    decode(group, options);
    for (size_t i = begin; i < end; ++i) sentences[order[i]] = std::move(group[i - begin]);
    begin = end;
  }
  for (size_t i = 0; i < texts.size(); ++i)
    on_answer(i, joined(std::span(sentences).subspan(first[i], first[i + 1] - first[i])));
}

}  // namespace brisk
