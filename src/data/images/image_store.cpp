#include "data/images/image_store.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "data/corpus/statistics.h"
#include "image/image_file.h"
#include "image/process.h"

namespace brisk {

namespace {

// Of images that nobody has asked for yet: those of some steps, which of pages are hundreds.
constexpr int64_t kAheadBytes = int64_t{512} << 20, kAheadShareOfCache = 8;
constexpr int64_t kLeastAhead = 8;
constexpr double kCacheShare = 0.25;  // of the memory that is free: the model is still to come

}  // namespace

struct ImageStore::State {
  std::vector<std::string> paths;
  std::vector<ImageInput> inputs;
  ImageStoreOptions options;
  int64_t image_bytes = 0, most_ahead = 0;

  // An image that was hinted at. Whoever wants it may hold it after it left the table.
  struct Ahead {
    enum class Stage : uint8_t { queued, in_work, done } stage = Stage::queued;
    Images images;
    std::exception_ptr failure;
    int64_t asked_at = 0;  // how many images had been delivered then
  };
  std::mutex mutex;
  std::condition_variable more_work, image_done;
  std::unordered_map<int64_t, std::shared_ptr<Ahead>> ahead;
  std::deque<int64_t> queue;  // of `ahead`; those that were taken out meanwhile are passed over
  std::unordered_map<int64_t, Images> kept;
  int64_t delivered = 0;
  bool quit = false;
  std::vector<std::thread> workers;

  ~State() {
    {
      const std::lock_guard lock(mutex);
      quit = true;
    }
    more_work.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  Images make(int64_t image) const {
    const std::string& path = paths[static_cast<size_t>(image)];
    const Image read = read_image(path);
    auto images = std::make_shared<std::vector<Image>>();
    for (const ImageInput& input : inputs) images->push_back(process_image(read, input.processing, path));
    return images;
  }

  // With the mutex held.
  void keep(int64_t image, const Images& images) {
    if ((std::ssize(kept) + 1) * image_bytes <= options.cache_bytes) kept.emplace(image, images);
  }

  // With the mutex held: what was hinted at long ago and never asked for, by a loader that is gone.
  void drop_stale() {
    std::erase_if(ahead, [&](const auto& entry) {
      return entry.second->stage != Ahead::Stage::in_work && delivered - entry.second->asked_at > 2 * most_ahead;
    });
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      more_work.wait(lock, [&] { return quit || !queue.empty(); });
      if (quit) return;
      const int64_t image = queue.front();
      queue.pop_front();
      const auto found = ahead.find(image);
      if (found == ahead.end() || found->second->stage != Ahead::Stage::queued) continue;
      const std::shared_ptr<Ahead> entry = found->second;
      entry->stage = Ahead::Stage::in_work;
      lock.unlock();
      Images images;
      std::exception_ptr failure;
      try {
        images = make(image);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      entry->images = std::move(images);
      entry->failure = failure;
      entry->stage = Ahead::Stage::done;
      image_done.notify_all();
    }
  }
};

ImageStore::ImageStore(std::vector<std::string> paths, std::vector<ImageInput> inputs, const ImageStoreOptions& options)
    : state_(std::make_unique<State>()) {
  BRISK_CHECK(!inputs.empty() && options.threads >= 0, "{} inputs, {} threads", inputs.size(), options.threads);
  State& state = *state_;
  state.paths = std::move(paths);
  state.inputs = std::move(inputs);
  state.options = options;
  for (const ImageInput& input : state.inputs) state.image_bytes += input.height * input.width * kColors;
  const int64_t ahead_bytes = std::max(kAheadBytes, options.cache_bytes / kAheadShareOfCache);
  state.most_ahead = std::max(kLeastAhead, ahead_bytes / std::max<int64_t>(1, state.image_bytes));
  try {
    for (int i = 0; i < options.threads; ++i) {
      state.workers.emplace_back([&state, &runtime = Runtime::current()] {
        const RuntimeScope scope(runtime);
        state.work();
      });
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those there are do it, or get() itself. The images are the same.
  }
}

ImageStore::~ImageStore() = default;

int64_t ImageStore::count() const { return std::ssize(state_->paths); }
const std::vector<ImageInput>& ImageStore::inputs() const { return state_->inputs; }
const std::string& ImageStore::path(int64_t image) const { return state_->paths[static_cast<size_t>(image)]; }
int64_t ImageStore::bytes_of_image() const { return state_->image_bytes; }

std::string ImageStore::cache_note() const {
  const int64_t fit = std::min(count(), state_->options.cache_bytes / std::max<int64_t>(1, bytes_of_image()));
  const std::string size = format_bytes(static_cast<double>(fit * bytes_of_image()));
  if (fit == count())
    return fmt::format("all {} images stay in memory once they were read ({})", with_commas(fit), size);
  return fmt::format(
      "{} of {} images ({:.0f} %) stay in memory once they were read ({}); the others are read again when they are wanted",
      with_commas(fit), with_commas(count()), 100.0 * static_cast<double>(fit) / static_cast<double>(count()), size);
}

void ImageStore::prefetch(std::span<const int64_t> images) const {
  State& state = *state_;
  if (state.workers.empty()) return;
  {
    const std::lock_guard lock(state.mutex);
    for (const int64_t image : images) {
      if (state.kept.contains(image) || state.ahead.contains(image)) continue;
      if (std::ssize(state.ahead) >= state.most_ahead) state.drop_stale();
      if (std::ssize(state.ahead) >= state.most_ahead) break;
      auto entry = std::make_shared<State::Ahead>();
      entry->asked_at = state.delivered;
      state.ahead.emplace(image, std::move(entry));
      state.queue.push_back(image);
    }
  }
  state.more_work.notify_all();
}

ImageStore::Images ImageStore::get(int64_t image) const {
  State& state = *state_;
  BRISK_CHECK(image >= 0 && image < count(), "image {} of {}", image, count());
  std::unique_lock lock(state.mutex);
  ++state.delivered;
  if (const auto found = state.kept.find(image); found != state.kept.end()) return found->second;
  if (const auto found = state.ahead.find(image); found != state.ahead.end()) {
    const std::shared_ptr<State::Ahead> entry = found->second;
    const bool begun = entry->stage != State::Ahead::Stage::queued;
    if (begun) state.image_done.wait(lock, [&] { return entry->stage == State::Ahead::Stage::done; });
    if (const auto still = state.ahead.find(image); still != state.ahead.end() && still->second == entry)
      state.ahead.erase(still);
    if (begun) {
      if (entry->failure) std::rethrow_exception(entry->failure);
      state.keep(image, entry->images);
      return entry->images;
    }
  }
  // Nobody has begun with it: to wait for a worker would take longer.
  lock.unlock();
  Images images = state.make(image);
  lock.lock();
  state.keep(image, images);
  return images;
}

int64_t default_image_cache_bytes() {
  return static_cast<int64_t>(kCacheShare * static_cast<double>(memory_available()));
}

}  // namespace brisk
