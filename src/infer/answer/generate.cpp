#include "infer/answer/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/runtime.h"
#include "infer/forward/forward_run.h"

namespace brisk {

TokenId sample_token(std::span<float> logits, std::span<const TokenId> text, const GenerateOptions& options,
                     double draw) {
  if (options.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const TokenId id : std::set<TokenId>(text.begin(), text.end())) {
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  if (options.temperature <= 0)
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());

  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  size_t kept = order.size();
  if (options.top_k > 0) kept = std::min(kept, static_cast<size_t>(options.top_k));
  const auto likelier = [&](TokenId a, TokenId b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const bool sorted = options.top_k > 0 || options.top_p < 1 || options.min_p > 0;
  if (sorted)
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), likelier);
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((static_cast<double>(logits[static_cast<size_t>(order[i])]) - largest) / options.temperature);
    sum += weights[i];
  }
  if (options.top_p < 1) {
    double reached = 0;
    size_t count = 0;
    while (count < kept && reached < options.top_p * sum) reached += weights[count++];
    kept = std::max<size_t>(1, count);
  }
  // The likeliest has the weight 1.
  if (options.min_p > 0) {
    while (kept > 1 && weights[kept - 1] < options.min_p) --kept;
  }
  sum = std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  double left = draw * sum;
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left <= 0) return order[i];
  }
  return order[kept - 1];
}

namespace {
// A foreign model may read far longer texts than anyone has memory for.
constexpr int64_t kLongestText = 4096;
int64_t cached_rows(const CausalModel& model) { return std::min(model.max_length(), kLongestText); }

// Holds back the end of a text that may be the beginning of a stop string.
class StopStrings {
 public:
  StopStrings(const std::vector<std::string>& stops, const std::function<void(std::string_view)>& on_piece)
      : on_piece_(on_piece) {
    for (const std::string& stop : stops) {
      if (!stop.empty()) stops_.push_back(stop);
    }
  }

  // The stop string that the text has with this piece, the first of several; empty: none yet.
  std::string add(std::string_view piece) {
    held_ += piece;
    size_t first = std::string::npos;
    std::string found;
    for (const std::string& stop : stops_) {
      if (const size_t at = held_.find(stop); at < first) {
        first = at;
        found = stop;
      }
    }
    size_t ready = std::min(first, held_.size());
    if (found.empty()) {
      for (const std::string& stop : stops_) ready = std::min(ready, held_.size() - overlap(stop));
    }
    emit(ready);
    return found;
  }

  void finish() { emit(held_.size()); }

 private:
  // How many of the last bytes are the first of `stop`.
  size_t overlap(const std::string& stop) const {
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > 0; --size) {
      if (held_.ends_with(std::string_view(stop).substr(0, size))) return size;
    }
    return 0;
  }

  void emit(size_t size) {
    if (size > 0 && on_piece_) on_piece_(std::string_view(held_).substr(0, size));
    held_.erase(0, size);
  }

  std::vector<std::string> stops_;
  const std::function<void(std::string_view)>& on_piece_;
  std::string held_;
};
}  // namespace

struct Generator::State {
  ForwardRun run;
  Buffer cache_memory, cache_range;
  KeyValueCache cache;
  int32_t filled = 0;  // positions in the cache

  State(const CausalModel& model, const ParameterStore& store)
      : run(store, {.rows = {{cached_rows(model), 1, cached_rows(model)}}, .backend = backend_of(store.device())},
            [&](Tape& tape) { return model.next_token_logits(tape); }) {
    Device& device = store.device();
    const DType activation_type = store.compute_type();
    const auto [layers, width] = model.sees_later_tokens() ? CacheShape{} : model.cache_shape();
    const int64_t rows = cached_rows(model), bytes = rows * width * size_of(activation_type);
    cache_memory = Buffer(device, 2 * layers * bytes);
    cache_range = Buffer(device, 2 * size_of(DType::i32));
    char* at = static_cast<char*>(cache_memory.data());
    for (int64_t layer = 0; layer < layers; ++layer) {
      cache.keys.push_back(matrix(at, activation_type, rows, width));
      cache.values.push_back(matrix(at + bytes, activation_type, rows, width));
      at += 2 * bytes;
    }
    cache.capacity = rows;
    cache.begin = static_cast<const int32_t*>(cache_range.data());
    cache.end = cache.begin + 1;
  }
};

Generator::Generator(const CausalModel& model, const ParameterStore& store, const Tokenizer& tokenizer)
    : model_(model), store_(store), tokenizer_(tokenizer), state_(std::make_unique<State>(model, store)) {}

Generator::~Generator() = default;

void Generator::feed(std::span<const TokenId> tokens, std::vector<float>& logits) {
  State& state = *state_;
  MicroBatch batch;
  MicroBatch::Set& rows = batch.sets[0];
  rows.tokens.assign(tokens.begin(), tokens.end());
  rows.sequence.assign(tokens.size(), 0);
  rows.position.resize(tokens.size());
  std::iota(rows.position.begin(), rows.position.end(), state.filled);
  rows.end_sequence(tokens.size());
  state.filled += static_cast<int32_t>(tokens.size());
  const int32_t range[2] = {0, state.filled};
  store_.device().copy_in(state.cache_range.data(), range, sizeof(range));
  state.cache.longest = state.filled;

  Ledger ledger;
  state.run.forward(batch, ledger, model_.sees_later_tokens() ? nullptr : &state.cache);
  // A model may have more entries than its tokenizer, never drawn in training.
  logits.resize(static_cast<size_t>(std::min(model_.vocab_size(), tokenizer_.vocab_size())));
  state.run.read(std::as_writable_bytes(std::span(logits)));
}

Generated Generator::generate(std::string_view prompt, const GenerateOptions& options,
                              const std::function<void(std::string_view)>& on_piece) {
  const auto start = std::chrono::steady_clock::now();
  // A document starts after an end-of-document token in training (data/token_store/token_stream.h), so a text does here.
  const std::optional<TokenId> first =
      tokenizer_.start_of_text() ? tokenizer_.start_of_text() : tokenizer_.end_of_document();
  Generated result;
  tokenizer_.encode(prompt, result.ids);
  result.prompt_tokens = static_cast<int64_t>(result.ids.size());
  std::vector<TokenId> pending;
  if (first) pending.push_back(*first);
  const bool caches = !model_.sees_later_tokens();
  pending.insert(pending.end(), result.ids.begin(), result.ids.end());
  if (pending.empty()) user_error("the tokenizer has no token that a text starts with: give a prompt to continue");

  const auto capacity = static_cast<size_t>(cached_rows(model_));
  result.context = cached_rows(model_);
  StopStrings stops(options.stop, on_piece);
  state_->filled = 0;
  std::vector<float> logits;
  while (result.new_tokens < options.max_tokens) {
    throw_if_cancelled();
    // A full cache goes on from the second half of the text: the model has seen no longer positions in training.
    if ((caches ? static_cast<size_t>(state_->filled) : 0) + pending.size() > capacity) {
      const size_t keep = std::min(std::max<size_t>(1, capacity / 2), std::max<size_t>(1, result.ids.size()));
      if (!result.ids.empty()) pending.assign(result.ids.end() - static_cast<std::ptrdiff_t>(keep), result.ids.end());
      if (result.new_tokens == 0) {
        result.prompt_dropped = result.prompt_tokens - static_cast<int64_t>(keep);
      } else {
        ++result.restarts;
      }
      state_->filled = 0;
    }
    if (!caches) state_->filled = 0;
    feed(pending, logits);
    if (options.ignore_end) {
      for (const std::optional<TokenId> end : {tokenizer_.end_of_document(), tokenizer_.start_of_text()}) {
        if (end && static_cast<size_t>(*end) < logits.size())
          logits[static_cast<size_t>(*end)] = -std::numeric_limits<float>::infinity();
      }
    }
    const double draw = random_uniform(random_key({options.seed}), static_cast<uint64_t>(result.ids.size()));
    const TokenId next = sample_token(logits, result.ids, options, draw);
    if (options.stop_at_end && (next == tokenizer_.end_of_document() || next == tokenizer_.start_of_text())) {
      result.ended = true;
      break;
    }
    result.ids.push_back(next);
    ++result.new_tokens;
    result.stopped_at = stops.add(tokenizer_.piece(next));
    if (!result.stopped_at.empty()) break;
    if (caches) pending.clear();
    pending.push_back(next);
  }
  result.text = tokenizer_.decode(result.ids);
  if (result.stopped_at.empty()) {
    stops.finish();
  } else {
    const std::vector<TokenId> prompt_ids(result.ids.begin(), result.ids.begin() + result.prompt_tokens);
    const size_t begin = std::min(tokenizer_.decode(prompt_ids).size(), result.text.size());
    result.text.resize(std::min(result.text.find(result.stopped_at, begin), result.text.size()));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace brisk
