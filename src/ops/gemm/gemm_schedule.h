// Dynamic scheduling of a matrix product: tasks that pack B and items of C, step by step, taken by whichever thread is
// free.
//
//   schedule.begin(threads, steps, items);
//   for (int64_t step = 0; step < steps; ++step) {          // on every thread
//     schedule.wait_for_buffer(step);                       // one of two, used alternately
//     while (schedule.take_pack(thread, step, tasks, task)) { pack(task); schedule.packed(step); }
//     schedule.wait_for_packed(step, tasks);
//     while (schedule.take_item(thread, step, item)) {
//       schedule.wait_for_item(step, item);                 // until the previous step of this item is done
//       multiply(item);
//       schedule.finished(step, item);
//     }
//   }
//
// There is no barrier: a thread that finds no item left packs for the next step and continues with it while others are
// still busy (barriers took 6 % of the small shape's products on two cores, and more on a busy machine), and a thread
// that was not scheduled is not waited for, unless it was preempted within a task. Each thread begins with a fixed
// share, so that what it packs stays in its cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>

namespace brisk::cpu {

class GemmSchedule {
 public:
  void begin(int64_t threads, int64_t steps, int64_t items) {
    threads_ = threads;
    items_ = items;
    reset(taken_, taken_size_, steps * threads);
    reset(done_, done_size_, steps);
    reset(item_steps_, item_size_, items);
  }

  bool take_pack(int thread, int64_t step, int64_t tasks, int64_t& task) {
    return take(thread, step, tasks, &Taken::packs, task);
  }
  void packed(int64_t step) { done_[step].packs.fetch_add(1, std::memory_order_release); }
  bool take_item(int thread, int64_t step, int64_t& item) { return take(thread, step, items_, &Taken::items, item); }
  void finished(int64_t step, int64_t item) {
    item_steps_[item].count.store(step + 1, std::memory_order_release);
    done_[step].items.fetch_add(1, std::memory_order_release);
  }

  void wait_for_buffer(int64_t step) const {
    if (step >= 2) wait_until(done_[step - 2].items, items_);
  }
  void wait_for_packed(int64_t step, int64_t tasks) const { wait_until(done_[step].packs, tasks); }
  // An item's sums over the depth are taken step by step.
  void wait_for_item(int64_t step, int64_t item) const { wait_until(item_steps_[item].count, step); }

 private:
  // A line each, so that nobody waits for a neighbour.
  struct alignas(64) Taken {
    std::atomic<int64_t> packs{0}, items{0};
  };
  struct alignas(64) Done {
    std::atomic<int64_t> packs{0}, items{0};
  };
  struct ItemSteps {
    std::atomic<int64_t> count{0};
  };

  template <typename Entry>
  static void reset(std::unique_ptr<Entry[]>& entries, int64_t& size, int64_t wanted) {
    if (size < wanted) {
      entries = std::make_unique<Entry[]>(static_cast<size_t>(wanted));
      size = wanted;
      return;
    }
    for (int64_t i = 0; i < wanted; ++i) new (&entries[static_cast<size_t>(i)]) Entry();
  }

  // Of its own share first, then of the others'.
  bool take(int thread, int64_t step, int64_t count, std::atomic<int64_t> Taken::*counter, int64_t& number) {
    for (int64_t i = 0; i < threads_; ++i) {
      const int64_t owner = (thread + i) % threads_;
      const int64_t begin = count * owner / threads_, size = count * (owner + 1) / threads_ - begin;
      std::atomic<int64_t>& taken = taken_[static_cast<size_t>(step * threads_ + owner)].*counter;
      if (taken.load(std::memory_order_relaxed) >= size) continue;
      const int64_t next = taken.fetch_add(1, std::memory_order_relaxed);
      if (next >= size) continue;
      number = begin + next;
      return true;
    }
    return false;
  }

  static void wait_until(const std::atomic<int64_t>& count, int64_t least) {
    constexpr int kSpins = 2000;
    for (int spin = 0; count.load(std::memory_order_acquire) < least; ++spin) {
      if (spin < kSpins) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else {
        std::this_thread::yield();
      }
    }
  }

  int64_t threads_ = 1, items_ = 0;
  int64_t taken_size_ = 0, done_size_ = 0, item_size_ = 0;
  std::unique_ptr<Taken[]> taken_;           // [steps, threads]
  std::unique_ptr<Done[]> done_;             // [steps]
  std::unique_ptr<ItemSteps[]> item_steps_;  // [items] steps done
};

}  // namespace brisk::cpu
