#include "infer/answer/conditional_generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "data/read/pieces.h"
#include "infer/answer/generate.h"
#include "infer/forward/decoding_cache.h"
#include "infer/forward/forward_run.h"
#include "ops/tape/tape_ops.h"

namespace brisk {

namespace {

// Texts so far that one step of the decoder goes on with: beyond these a step takes as much longer as it does more.
constexpr int64_t kSlotsOnCpu = 256, kSlotsOnGpu = 2048;
constexpr int64_t kMostCacheBytes = int64_t{256} << 20, kMostCacheBytesOnGpu = int64_t{8} << 30;
// Rows that are encoded together, and rows that cross-attention reads of the sources that are decoded together.
constexpr int64_t kSourceRowsOnCpu = 4096, kSourceRowsOnGpu = 65536;
constexpr int64_t kCapacityStep = 64;  // tokens of a text

// The texts so far of one source, whose next tokens are wanted.
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

// Texts of one source that are computed side by side.
int64_t width_of(const TranslateOptions& options) { return options.sample ? options.n_best : options.beam; }

}  // namespace

struct ConditionalGenerator::State {
  struct Size {
    int64_t slots = 0, capacity = 0;  // rows of a slot
    RowCapacity sources{};            // of set 0, of those that are encoded together
    int64_t memory_rows = 0;          // where not all are; otherwise 0
    bool holds(const Size& other) const {
      return slots >= other.slots && capacity >= other.capacity && sources.rows >= other.sources.rows &&
             sources.sequences >= other.sources.sequences && sources.longest >= other.sources.longest &&
             memory_rows >= other.memory_rows;
    }
  };
  Size size;
  ForwardRun encoder, decoder;
  DecodingCache cache;
  std::vector<float> log_probabilities;  // [S, V]

  State(const ConditionalModel& model, const ParameterStore& store, const BatchLayout& layout, const Size& size,
        int64_t first_rows)
      : size(size),
        encoder(store, {.rows = layout.capacities(size.sources), .backend = backend_of(store.device())},
                [&](Tape& tape) { return model.encode(tape); }),
        decoder(store,
                {.rows = {{size.slots * first_rows, size.slots, first_rows}}, .backend = backend_of(store.device())},
                [&](Tape& tape) {
                  const Value value = log_softmax(tape, model.next_token_logits(tape));
                  tape.read_back(value);
                  return value;
                }),
        cache(store, model, size.slots, size.capacity, size.memory_rows) {}
};

ConditionalGenerator::ConditionalGenerator(const ConditionalModel& model, const ParameterStore& store, PairFrame frame,
                                           int64_t known)
    : model_(model), store_(store), frame_(std::move(frame)), known_(known) {
  const int64_t written = std::ssize(frame_.target_prefix) + 1;
  if (model.max_target_length() >= written) return;
  user_error(
      "the model writes texts of at most {} tokens: with special tokens a word takes {}; use a model of longer texts "
      "(model.context)",
      model.max_target_length(), written);
}
ConditionalGenerator::~ConditionalGenerator() = default;
ConditionalGenerator::ConditionalGenerator(ConditionalGenerator&&) noexcept = default;

int64_t ConditionalGenerator::most_tokens(const Request& request) const {
  const int64_t most = model_.max_target_length() - std::ssize(frame_.target_prefix);
  return std::clamp<int64_t>(request.most_tokens, 1, std::max<int64_t>(1, most));
}

int64_t ConditionalGenerator::memory_rows(const Sequences& sources, int64_t index) const {
  return model_.memory_set() == 0 ? sources.rows(index, 0) : model_.max_memory_rows();
}

void ConditionalGenerator::decode(const Sequences& sources, const BatchLayout& layout,
                                  std::span<const Request> requests, std::span<const int64_t> group,
                                  const TranslateOptions& options, const OnFound& on_found) {
  const int64_t width = width_of(options), forced = std::ssize(frame_.target_prefix);
  const int64_t most_rows = store_.device().is_cuda() ? kSourceRowsOnGpu : kSourceRowsOnCpu;
  State::Size size;
  std::vector<size_t> ends;  // in the group, of those that are encoded together
  int64_t rows = 0, memory = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const int64_t own = sources.rows(group[i], 0);
    if (rows > 0 && rows + own > most_rows) {
      ends.push_back(i);
      rows = 0;
    }
    rows += own;
    memory += memory_rows(sources, group[i]);
    const auto together = static_cast<int64_t>(i + 1 - (ends.empty() ? 0 : ends.back()));
    size.sources = {std::max(size.sources.rows, rows), std::max(size.sources.sequences, together),
                    std::max(size.sources.longest, own)};
    size.capacity = std::max(size.capacity, forced + most_tokens(requests[static_cast<size_t>(group[i])]));
  }
  ends.push_back(group.size());
  size.memory_rows = ends.size() > 1 ? memory : 0;
  size.capacity = round_up(size.capacity, kCapacityStep);
  size.slots = std::ssize(group) * width;
  if (!state_ || !state_->size.holds(size)) {
    state_.reset();
    state_ = std::make_unique<State>(model_, store_, layout, size, 1 + forced);
  }
  State& state = *state_;

  // A source and its texts so far.
  struct Active {
    int64_t index;
    std::unique_ptr<TextSearch> search;
    std::vector<int64_t> slots;  // of its texts
    std::vector<int64_t> free;   // the others of its slots
    int64_t memory_begin, memory_end;
  };
  std::vector<Active> active;
  Ledger ledger;
  MicroBatch batch;
  batch.sets.resize(1 + layout.others.size());
  int64_t memory_begin = 0;
  for (size_t begin = 0; const size_t end : ends) {
    batch.clear();
    for (size_t i = begin; i < end; ++i) sources.append(group[i], 0, static_cast<int32_t>(i - begin), batch);
    state.encoder.forward(batch, ledger);
    if (ends.size() == 1) {
      state.cache.read_memory(state.encoder.value());
    } else {
      state.cache.keep_memory(state.encoder.value(), memory_begin);
    }
    const MicroBatch::Set& encoded = batch.sets[static_cast<size_t>(model_.memory_set())];
    for (size_t i = begin; i < end; ++i) {
      const Request& request = requests[static_cast<size_t>(group[i])];
      std::unique_ptr<TextSearch> search;
      if (options.sample) {
        search = std::make_unique<DrawnTexts>(options, random_key({options.seed, request.number, request.part}),
                                              frame_.end, most_tokens(request));
      } else {
        // With one beam, the first text that ends is the likeliest token at each step.
        const BeamOptions beams{options.beam, options.length_penalty,
                                options.beam == 1 ? EarlyStopping::first : options.early_stopping};
        search = std::make_unique<BeamTexts>(beams, frame_.end, most_tokens(request), forced);
      }
      Active& one = active.emplace_back(Active{group[i],
                                               std::move(search),
                                               {},
                                               {},
                                               memory_begin + encoded.starts[i - begin],
                                               memory_begin + encoded.starts[i - begin + 1]});
      for (int64_t text = 0; text < width; ++text) {
        const int64_t slot = static_cast<int64_t>(i) * width + text;
        (text < one.search->count() ? one.slots : one.free).push_back(slot);
      }
    }
    memory_begin += encoded.rows();
    begin = end;
  }

  const int64_t known = std::min(model_.target_vocab_size(), known_);
  const auto vocabulary = static_cast<size_t>(model_.target_vocab_size());
  // What the decoder begins with is in no text, and a model may never have learned not to write it: Marian's padding token has
  // a logit of 0, which is more than those of most words. BART begins with the token that ends a text.
  const bool start_may_come_again = frame_.start == frame_.end;
  std::vector<DecodingCache::Sequence> sequences;
  std::vector<size_t> first_row;  // of each active sentence, in the log probabilities
  std::vector<DecodingCache::Copy> copies;
  std::vector<TokenId> first_tokens = {frame_.start};
  first_tokens.insert(first_tokens.end(), frame_.target_prefix.begin(), frame_.target_prefix.end());
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
        rows[row + static_cast<size_t>(frame_.start)] = -std::numeric_limits<float>::infinity();
      }
      one.search->advance(rows, known);
    });
    // The first text that goes on from another keeps its slot, the others get copies of it.
    copies.clear();
    for (Active& one : active) {
      if (one.search->is_done()) {
        const std::vector<Found> found = one.search->found();
        for (const Found& text : found) tokens_ += std::ssize(text.tokens) + (text.ended ? 1 : 0);
        on_found(one.index, found);
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

void ConditionalGenerator::generate(const Sequences& sources, const BatchLayout& layout,
                                    std::span<const Request> requests, const TranslateOptions& options,
                                    const OnFound& on_found) {
  BRISK_CHECK(options.n_best >= 1 && options.beam >= 1 && (options.sample || options.n_best <= options.beam),
              "{} of {} beams", options.n_best, options.beam);
  BRISK_CHECK(sources.count() == std::ssize(requests), "{} requests for {} sources", requests.size(), sources.count());
  std::vector<int64_t> order(requests.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return sources.rows(a, 0) > sources.rows(b, 0); });
  const bool on_gpu = store_.device().is_cuda();
  const int64_t most_rows = on_gpu ? kSourceRowsOnGpu : kSourceRowsOnCpu;
  for (size_t begin = 0; begin < order.size();) {
    int64_t rows = 0, capacity = 0;
    size_t end = begin;
    for (; end < order.size(); ++end) {
      const Request& request = requests[static_cast<size_t>(order[end])];
      rows += memory_rows(sources, order[end]);
      capacity = std::max(capacity, round_up(std::ssize(frame_.target_prefix) + most_tokens(request), kCapacityStep));
      const int64_t bytes = DecodingCache::bytes(model_, store_.compute_type(), 1, capacity);
      const int64_t slots =
          std::min(on_gpu ? kSlotsOnGpu : kSlotsOnCpu, (on_gpu ? kMostCacheBytesOnGpu : kMostCacheBytes) / bytes);
      const bool fits = rows <= most_rows && (static_cast<int64_t>(end - begin) + 1) * width_of(options) <= slots;
      if (end > begin && !fits) break;
    }
    decode(sources, layout, requests, std::span(order).subspan(begin, end - begin), options, on_found);
    begin = end;
  }
}

}  // namespace brisk
