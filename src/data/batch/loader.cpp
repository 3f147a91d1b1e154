#include "data/batch/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/runtime.h"
#include "base/sum_tree.h"

namespace brisk {

namespace {

// Which sequence stands where in an epoch. Nothing is held but the sources.
class EpochOrder {
 public:
  EpochOrder(int64_t chunks, const LoaderOptions& options) : seed_(options.seed), shuffle_(options.shuffle) {
    sources_ = options.sources;
    if (sources_.empty()) sources_ = {{.chunks = chunks, .draws = chunks}};
    int64_t covered = 0;
    for (const SourceShare& source : sources_) {
      covered += source.chunks;
      draws_ += source.draws;
      BRISK_CHECK((source.chunks > 0) == (source.draws > 0), "{} draws of {} chunks", source.draws, source.chunks);
    }
    BRISK_CHECK(covered == chunks, "sources of {} chunks, and {} there are", covered, chunks);
  }

  int64_t draws() const { return draws_; }

  int64_t number(int64_t epoch, int64_t place) const {
    int64_t drawn = shuffle_ ? shuffled_index(seed_, epoch, place, draws_) : place;
    int64_t first = 0;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const SourceShare& source = sources_[i];
      if (drawn < source.draws) return first + within(i, epoch * source.draws + drawn);
      drawn -= source.draws;
      first += source.chunks;
    }
    BRISK_CHECK(false, "place {} of {}", place, draws_);
    return 0;
  }

 private:
  // Draw number `draw` of a source since the first epoch: its chunks are gone through again and again. Which of them a
  // part of a pass takes must not depend on where they lie, so a pass that epochs share has an order of its own.
  int64_t within(size_t number, int64_t draw) const {
    const SourceShare& source = sources_[number];
    const int64_t pass = draw / source.chunks, place = draw % source.chunks;
    if (source.draws % source.chunks == 0 || !shuffle_) return place;
    constexpr uint64_t kSourceSite = 0x736F75726365;  // "source": apart from every other use of the seed
    return shuffled_index(random_key({seed_, kSourceSite, number}), pass, place, source.chunks);
  }

  uint64_t seed_;
  bool shuffle_;
  std::vector<SourceShare> sources_;
  int64_t draws_ = 0;
};

// The numbers of the sequences of one step, in the order of its epoch.
std::vector<int64_t> numbers_of_step(const EpochOrder& order, int64_t sequences_per_step, DataCursor cursor) {
  const int64_t begin = cursor.step * sequences_per_step;
  const int64_t end = std::min(begin + sequences_per_step, order.draws());
  std::vector<int64_t> step;
  step.reserve(static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) step.push_back(order.number(cursor.epoch, i));
  return step;
}

}  // namespace

int64_t steps_of_epoch(int64_t draws, const LoaderOptions& options) {
  const int64_t whole = draws / options.sequences_per_step, rest = draws % options.sequences_per_step;
  return whole + (rest > options.droppable_sequences || whole == 0 ? 1 : 0);
}

void count_targets(StepBatch& step) {
  bool weighted = false;
  std::vector<double> weights;  // of each part
  for (const StepBatch::Part& part : step.parts()) {
    double& sum = weights.emplace_back(0);
    for (int64_t i = part.begin; i < part.end; ++i) {
      for (const MicroBatch::Set& set : step.micro_batches[static_cast<size_t>(i)].sets) {
        weighted |= !set.weights.empty();
        for (size_t row = 0; row < set.targets.size(); ++row) {
          if (set.targets[row] < 0) continue;
          ++step.valid_tokens;
          sum += set.weights.empty() ? 1 : set.weights[row];
        }
      }
    }
  }
  if (weighted) step.weight_sum = sum_in_tree(weights);
}

// A Feistel network over the smallest square power of two that holds `count`, walked until it lands inside: four
// visits at the worst on average, no memory, and any place of any epoch at once.
int64_t shuffled_index(uint64_t seed, int64_t epoch, int64_t index, int64_t count) {
  constexpr int kRounds = 6;
  constexpr uint64_t kShuffleSite = 0x73687566666C65;  // "shuffle": apart from every other use of the seed
  const uint64_t key = random_key({seed, kShuffleSite, static_cast<uint64_t>(epoch)});
  int half_bits = 1;
  while (half_bits < 31 && (int64_t{1} << (2 * half_bits)) < count) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  auto place = static_cast<uint64_t>(index);
  do {
    uint64_t left = place >> half_bits, right = place & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t mixed = mix64(key ^ (static_cast<uint64_t>(round) << 56) ^ right);
      left = std::exchange(right, left ^ (mixed & mask));
    }
    place = left << half_bits | right;
  } while (place >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(place);
}

// Whose files are read while the steps before are built, and those before them computed.
constexpr int64_t kStepsPrefetched = 2;

struct Loader::State {
  std::shared_ptr<const Sequences> sequences;
  LoaderOptions options;
  std::optional<EpochOrder> order;
  int64_t steps_per_epoch = 0;
  int64_t first = 0;      // steps before the first one, counted from the beginning of epoch 0
  int64_t delivered = 0;  // by next(), since the first

  // Step number n (since the first) waits in slot n modulo the number of slots.
  struct Slot {
    bool ready = false;
    StepBatch batch;
    std::exception_ptr exception;
  };
  std::mutex mutex;
  std::condition_variable slot_free, slot_ready;
  std::vector<Slot> slots;
  int64_t claimed = 0;     // steps that a worker has begun
  int64_t prefetched = 0;  // steps whose sequences were prefetched
  bool quit = false;
  std::vector<std::thread> workers;

  DataCursor cursor_of(int64_t number) const {
    return {(first + number) / steps_per_epoch, (first + number) % steps_per_epoch};
  }

  StepBatch build(int64_t number) const {
    StepBatch batch;
    batch.cursor = cursor_of(number);
    batch.next = cursor_of(number + 1);
    batch.last_of_epoch = batch.next.step == 0;
    const std::vector<int64_t> step = numbers_of_step(*order, options.sequences_per_step, batch.cursor);
    if (options.share.parts == 1) {
      batch.sequences = std::ssize(step);
      batch.micro_batches = pack_step(*sequences, step, batch.cursor.epoch, options.micro_batch_rows, options.padding);
    } else {
      pack_parts(step, batch);
    }
    count_targets(batch);
    return batch;
  }

  // The sequences of a step that this process computes.
  std::vector<int64_t> own_sequences(int64_t number) const {
    std::vector<int64_t> step = numbers_of_step(*order, options.sequences_per_step, cursor_of(number));
    if (options.share.parts == 1) return step;
    std::vector<int64_t> own;
    const auto parts = divide_into_parts(lengths_of(*sequences, step), options.share.parts);
    for (int64_t part = options.share.first; part < options.share.first + options.share.count; ++part) {
      for (const int32_t place : parts[static_cast<size_t>(part)]) own.push_back(step[static_cast<size_t>(place)]);
    }
    return own;
  }

  // The steps to prefetch when this one is begun, taken once.
  std::pair<int64_t, int64_t> take_prefetch(int64_t number) {
    if (!sequences->has_prefetch()) return {0, 0};
    const int64_t begin = std::max(prefetched, number);
    prefetched = std::max(prefetched, number + 1 + kStepsPrefetched);
    return {begin, prefetched};
  }

  void prefetch(std::pair<int64_t, int64_t> steps) const {
    for (int64_t number = steps.first; number < steps.second; ++number) sequences->prefetch(own_sequences(number));
  }

  void pack_parts(const std::vector<int64_t>& step, StepBatch& batch) const {
    const StepShare& share = options.share;
    const auto parts = divide_into_parts(lengths_of(*sequences, step), share.parts);
    for (int64_t part = share.first; part < share.first + share.count; ++part) {
      const std::vector<int32_t>& places = parts[static_cast<size_t>(part)];
      batch.sequences += std::ssize(places);
      for (MicroBatch& packed :
           pack_part(*sequences, step, places, batch.cursor.epoch, options.micro_batch_rows, options.padding))
        batch.micro_batches.push_back(std::move(packed));
      batch.part_ends.push_back(std::ssize(batch.micro_batches));
    }
  }

  void work() {
    const auto ahead = static_cast<int64_t>(slots.size());
    std::unique_lock lock(mutex);
    for (;;) {
      slot_free.wait(lock, [&] { return quit || claimed < delivered + ahead; });
      if (quit) return;
      const int64_t number = claimed++;
      const std::pair<int64_t, int64_t> ahead_of_it = take_prefetch(number);
      lock.unlock();
      StepBatch batch;
      std::exception_ptr exception;
      try {
        prefetch(ahead_of_it);
        batch = build(number);
      } catch (...) {
        exception = std::current_exception();
      }
      lock.lock();
      Slot& slot = slots[static_cast<size_t>(number % ahead)];
      slot.batch = std::move(batch);
      slot.exception = exception;
      slot.ready = true;
      slot_ready.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    slot_free.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

Loader::Loader(std::shared_ptr<const Sequences> sequences, const LoaderOptions& options)
    : state_(std::make_unique<State>()) {
  BRISK_CHECK(!sequences->empty(), "a loader over no sequences");
  BRISK_CHECK(options.sequences_per_step > 0, "sequences_per_step = {}", options.sequences_per_step);
  BRISK_CHECK(options.share.first >= 0 && options.share.first + options.share.count <= options.share.parts,
              "parts {} to {} of {}", options.share.first, options.share.first + options.share.count,
              options.share.parts);
  BRISK_CHECK(options.steps_ahead > 0 && options.workers >= 0, "steps_ahead = {}, workers = {}", options.steps_ahead,
              options.workers);
  State& state = *state_;
  state.sequences = std::move(sequences);
  state.options = options;
  state.order.emplace(state.sequences->count(), options);
  state.steps_per_epoch = steps_of_epoch(state.order->draws(), options);
  BRISK_CHECK(state.sequences->sets() == std::ssize(options.micro_batch_rows), "{} row sets, limits of {}",
              state.sequences->sets(), options.micro_batch_rows.size());
  for (size_t set = 0; set < options.micro_batch_rows.size(); ++set) {
    const int64_t longest = state.sequences->longest(static_cast<int>(set)), limit = options.micro_batch_rows[set];
    BRISK_CHECK(longest <= limit, "a sequence of {} rows, micro-batches of {}", longest, limit);
  }
  const DataCursor start = options.start;
  constexpr int64_t kMostSteps = int64_t{1} << 60;
  if (start.epoch < 0 || start.step < 0 || start.step > state.steps_per_epoch ||
      start.epoch > kMostSteps / state.steps_per_epoch) {
    user_error(
        "the checkpoint is at epoch {}, step {}, but an epoch now has {} steps: the data, its weights, max_length, "
        "batch_size or gradient_accumulation_steps changed since; use the run's original settings, or start a new run",
        start.epoch, start.step, state.steps_per_epoch);
  }
  state.first = start.epoch * state.steps_per_epoch + start.step;
  state.slots.resize(static_cast<size_t>(options.steps_ahead));
  try {
    for (int i = 0; i < options.workers; ++i) {
      state.workers.emplace_back([&state, &runtime = Runtime::current()] {
        const RuntimeScope scope(runtime);
        state.work();
      });
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those there are do it, or next() itself. The batches are the same.
  } catch (...) {
    state.stop();
    throw;
  }
}

Loader::~Loader() { state_->stop(); }

StepBatch Loader::next() {
  State& state = *state_;
  if (state.workers.empty()) {
    state.prefetch(state.take_prefetch(state.delivered));
    StepBatch batch = state.build(state.delivered);
    ++state.delivered;
    return batch;
  }
  StepBatch batch;
  std::exception_ptr exception;
  {
    std::unique_lock lock(state.mutex);
    State::Slot& slot = state.slots[static_cast<size_t>(state.delivered % static_cast<int64_t>(state.slots.size()))];
    state.slot_ready.wait(lock, [&] { return slot.ready; });
    batch = std::move(slot.batch);
    exception = std::exchange(slot.exception, nullptr);
    slot = {};
    ++state.delivered;
  }
  state.slot_free.notify_one();
  if (exception) std::rethrow_exception(exception);
  return batch;
}

int64_t Loader::steps_per_epoch() const { return state_->steps_per_epoch; }

DataCursor Loader::cursor() const { return state_->cursor_of(state_->delivered); }

PackingFigures measure_packing(const Sequences& sequences, const LoaderOptions& options, int64_t steps_limit) {
  if (sequences.empty() || steps_limit <= 0) return {};
  const EpochOrder order(sequences.count(), options);
  const int64_t steps = steps_of_epoch(order.draws(), options);
  const int64_t measured = std::min(steps, steps_limit);
  int64_t rows = 0, rows_to_longest = 0, computed_rows = 0, micro_batches = 0;
  for (int64_t i = 0; i < measured; ++i) {
    const std::vector<int64_t> step = numbers_of_step(order, options.sequences_per_step, {0, i * steps / measured});
    const StepLengths lengths = lengths_of(sequences, step);
    for (const std::vector<int64_t>& of_set : lengths) {
      rows += std::accumulate(of_set.begin(), of_set.end(), int64_t{0});
      rows_to_longest += *std::max_element(of_set.begin(), of_set.end()) * std::ssize(of_set);
    }
    for (const auto& members : divide_step(lengths, options.micro_batch_rows, options.padding)) {
      computed_rows += rows_of(lengths, members, options.padding);
      ++micro_batches;
    }
  }
  const int64_t capacity =
      std::accumulate(options.micro_batch_rows.begin(), options.micro_batch_rows.end(), int64_t{0});
  const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  return {.micro_batch_tokens = capacity,
          .packing_efficiency = ratio(rows, micro_batches * capacity),
          .padded_efficiency = ratio(rows, rows_to_longest),
          .micro_batches_per_step = ratio(micro_batches, measured),
          .rows_per_step = ratio(rows, measured),
          .computed_rows_per_step = ratio(computed_rows, measured),
          .sequences_per_step = options.sequences_per_step};
}

}  // namespace brisk
