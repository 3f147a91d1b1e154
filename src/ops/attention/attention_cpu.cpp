#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/attention/attention_kernels.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/cpu/thread_scratch.h"

namespace brisk::cpu {

namespace {

// Pieces of a long sequence are multiples of this: whole tiles of every kernel, and worth packing the keys again for.
constexpr int64_t kPiece = 96;

struct CostedTask {
  AttentionTask task;
  int64_t cost;
};

// Which kernels compute an op.
enum class Kernels : uint8_t { usual, narrow, entropy, reference };
Kernels kernels_of(const AttentionShape& shape, bool has_entropy, bool has_bias) {
  const bool own_keys = shape.heads == shape.kv_heads;
  const int64_t width = shape.head_width;
  if (!has_vector_kernels()) return Kernels::reference;
  if (has_entropy) return own_keys && (width == 2 || width == 4 || width == 8) ? Kernels::entropy : Kernels::reference;
  return own_keys && width <= kNarrowWidth && !has_bias ? Kernels::narrow : Kernels::usual;
}
Kernels kernels_of(const AttentionForward& op) {
  return kernels_of(op.shape, static_cast<bool>(op.entropy), static_cast<bool>(op.bias));
}

// How many tasks the heads of a sequence are.
int64_t head_tasks(const AttentionShape& shape, Kernels kernels) {
  if (kernels == Kernels::entropy) return 1;
  return kernels == Kernels::narrow ? divide_up(shape.heads, kNarrowColumns / shape.head_width) : shape.kv_heads;
}

// The tasks of an op, dearest first. Every output is written by one task in an order of its own, so who runs which task
// changes no bit. `may_split`: pieces of long sequences where there are fewer heads than would keep the threads busy.
const std::vector<CostedTask>& tasks_of(const AttentionForward& op, int64_t head_tasks, int threads, bool may_split) {
  static thread_local std::vector<CostedTask> tasks;                       // kept, so that a step allocates nothing
  static thread_local std::vector<std::pair<int64_t, int64_t>> sequences;  // cost of a head, number
  tasks.clear();
  sequences.clear();
  const int64_t heads = op.queries.sequences * head_tasks;
  const int64_t wanted = may_split && threads > 1 && heads > 0 ? divide_up(4 * threads, heads) : 1;
  for (int64_t s = 0; s < op.queries.sequences; ++s) {
    const int64_t queries = op.queries.starts[s + 1] - op.queries.starts[s], keys = op.k_end[s] - op.k_begin[s];
    sequences.emplace_back((queries + 1) * (keys + 64), s);
  }
  // Hundreds of short sequences times a dozen heads: sorting the sequences is a twentieth of sorting the tasks.
  std::sort(sequences.begin(), sequences.end(),
            [](const auto& a, const auto& b) { return std::tie(b.first, a.second) < std::tie(a.first, b.second); });
  bool sorted = true;
  for (const auto& [cost, s] : sequences) {
    const int64_t queries = op.queries.starts[s + 1] - op.queries.starts[s], keys = op.k_end[s] - op.k_begin[s];
    const int64_t piece = std::max<int64_t>(1, (queries / wanted + kPiece - 1) / kPiece) * kPiece;
    for (int64_t head = 0; head < head_tasks; ++head) {
      if (!may_split || queries <= piece) {
        tasks.push_back({{s, head, 0, queries}, cost});
        continue;
      }
      sorted = false;
      for (int64_t first = 0; first < queries; first += piece) {
        const int64_t count = std::min(piece, queries - first);
        const int64_t seen = op.shape.causal ? std::max<int64_t>(0, keys - queries + first + count) : keys;
        tasks.push_back({{s, head, first, count}, count * (seen + 64)});
      }
    }
  }
  if (sorted) return tasks;
  // Heads of one sequence stay together: they share pages.
  std::sort(tasks.begin(), tasks.end(), [](const CostedTask& a, const CostedTask& b) {
    return std::tie(b.cost, a.task.sequence, a.task.kv_head) < std::tie(a.cost, b.task.sequence, b.task.kv_head);
  });
  return tasks;
}

template <typename Run>
void run_tasks(const std::vector<CostedTask>& tasks, int64_t scratch_bytes, const Run& run) {
  std::atomic<size_t> unclaimed{0};
  const size_t held_back = 2 * static_cast<size_t>(thread_pool().size());
  const auto work = [&](int) {
    void* scratch = thread_scratch(scratch_bytes);
    for (size_t t = unclaimed++; t < tasks.size();) {
      // Claimed one ahead, so that its rows can be fetched early, except near the end, where another thread may be
      // idle.
      const bool ahead = t + held_back < tasks.size();
      const size_t next = ahead ? unclaimed++ : tasks.size();
      run(tasks[t].task, next < tasks.size() ? &tasks[next].task : nullptr, scratch);
      t = ahead ? next : unclaimed++;
    }
  };
  // A hand-over to the thread pool takes some microseconds: a single task, or very small ones, are done sooner here.
  constexpr int64_t kSmallCost = 4096;
  int64_t cost = 0;
  for (size_t t = 0; t < tasks.size() && cost < kSmallCost; ++t) cost += tasks[t].cost;
  if (tasks.size() <= 1 || cost < kSmallCost) {
    work(0);
  } else {
    thread_pool().run(work);
  }
}

int64_t most_queries(const std::vector<CostedTask>& tasks) {
  int64_t most = 0;
  for (const CostedTask& costed : tasks) most = std::max(most, costed.task.queries);
  return most;
}

int64_t most_keys(const AttentionForward& op) {
  int64_t most = 0;
  for (int64_t s = 0; s < op.queries.sequences; ++s) most = std::max<int64_t>(most, op.k_end[s] - op.k_begin[s]);
  return most;
}

}  // namespace

void attention_forward(const AttentionForward& op) {
  const Kernels kernels = kernels_of(op);
  if (kernels == Kernels::reference) return ref::attention_forward(op);
  const auto& tasks = tasks_of(op, head_tasks(op.shape, kernels), thread_pool().size(), true);
  const int64_t queries = most_queries(tasks), keys = most_keys(op);
  if (kernels == Kernels::usual) {
    const auto run = BRISK_ACTIVE_ISA(attention_forward_task);
    run_tasks(
        tasks, BRISK_ACTIVE_ISA(attention_forward_scratch)(op, queries, keys),
        [&](const AttentionTask& task, const AttentionTask* next, void* scratch) { run(op, task, next, scratch); });
    return;
  }
  const bool narrow = kernels == Kernels::narrow;
  const auto run =
      narrow ? BRISK_ACTIVE_ISA(narrow_attention_forward_task) : BRISK_ACTIVE_ISA(entropy_attention_forward_task);
  const auto bytes = narrow ? BRISK_ACTIVE_ISA(narrow_attention_scratch) : BRISK_ACTIVE_ISA(entropy_attention_scratch);
  run_tasks(tasks, bytes(op, false, queries, keys),
            [&](const AttentionTask& task, const AttentionTask*, void* scratch) { run(op, task, scratch); });
}

int64_t attention_workspace_bytes(const AttentionShape& shape, bool has_entropy, bool has_bias, DType type,
                                  int64_t queries, int64_t keys) {
  AttentionForward op;
  op.shape = shape;
  op.q.type = op.k.type = op.v.type = op.y.type = type;
  const auto larger_of = [&](int64_t forward, int64_t backward) {
    return thread_pool().size() * std::max(forward, backward);
  };
  switch (kernels_of(shape, has_entropy, has_bias)) {
    case Kernels::reference: break;
    case Kernels::usual:
      return larger_of(BRISK_ACTIVE_ISA(attention_forward_scratch)(op, queries, keys),
                       BRISK_ACTIVE_ISA(attention_backward_scratch)(op, queries, keys));
    case Kernels::narrow:
      return larger_of(BRISK_ACTIVE_ISA(narrow_attention_scratch)(op, false, queries, keys),
                       BRISK_ACTIVE_ISA(narrow_attention_scratch)(op, true, queries, keys));
    case Kernels::entropy:
      return larger_of(BRISK_ACTIVE_ISA(entropy_attention_scratch)(op, false, queries, keys),
                       BRISK_ACTIVE_ISA(entropy_attention_scratch)(op, true, queries, keys));
  }
  return 0;
}

namespace {

// The parts of all sequences, in their order, whoever made them.
void sum_bias_parts(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  thread_pool().for_range(forward.shape.heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t head = begin; head < end; ++head) {
      float* sums = op.dbias.f32() + head * op.dbias.stride;
      const float* parts = op.dbias_parts.f32() + head * op.dbias_parts.stride;
      std::fill(sums, sums + op.dbias.cols, 0.0f);
      for (int64_t s = 0; s < forward.queries.sequences; ++s) {
        const BiasPart part = bias_part(forward, s);
        float* middle = sums + op.dbias.cols / 2;
        for (int64_t at = part.first; at < part.first + part.count; ++at) middle[at - part.middle] += parts[at];
      }
    }
  });
}

}  // namespace

void attention_backward(const AttentionBackward& op) {
  const AttentionForward& forward = op.forward;
  const Kernels kernels = kernels_of(forward);
  if (kernels == Kernels::reference) return ref::attention_backward(op);
  const auto& tasks = tasks_of(forward, head_tasks(forward.shape, kernels), thread_pool().size(), false);
  const int64_t queries = most_queries(tasks), keys = most_keys(forward);
  if (kernels == Kernels::usual) {
    const auto run = BRISK_ACTIVE_ISA(attention_backward_task);
    run_tasks(
        tasks, BRISK_ACTIVE_ISA(attention_backward_scratch)(forward, queries, keys),
        [&](const AttentionTask& task, const AttentionTask* next, void* scratch) { run(op, task, next, scratch); });
    if (op.dbias) sum_bias_parts(op);
    return;
  }
  const bool narrow = kernels == Kernels::narrow;
  const auto run =
      narrow ? BRISK_ACTIVE_ISA(narrow_attention_backward_task) : BRISK_ACTIVE_ISA(entropy_attention_backward_task);
  const auto bytes = narrow ? BRISK_ACTIVE_ISA(narrow_attention_scratch) : BRISK_ACTIVE_ISA(entropy_attention_scratch);
  run_tasks(tasks, bytes(forward, true, queries, keys),
            [&](const AttentionTask& task, const AttentionTask*, void* scratch) { run(op, task, scratch); });
}

}  // namespace brisk::cpu
