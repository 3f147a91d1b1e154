#include "ops/attention/cuda/attention_cudnn_cuda.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "base/rounding.h"
#include "ops/attention/attention_cudnn_limits.h"
#include "ops/attention/cuda/attention_graph_cuda.h"
#include "ops/attention/cuda/attention_rows_cuda.h"
#include "ops/cuda/workspace_cuda.h"
#include "ops/tape/gpu_workspace.h"

namespace brisk::cuda {

namespace {

constexpr int64_t kLengthsStep = 128;
constexpr int64_t kUnmaskedEdges = 91501;  // before, lengths that are no multiple of 128 need a mask

std::string& refusal_said() {
  static std::string said;
  return said;
}
std::string& engine_said() {
  static std::string said;
  return said;
}

bool refused(std::string why) {
  refusal_said() = std::move(why);
  return false;
}

// What ops have in common is reserved for our own kernels; cuDNN's may grow it (GpuWorkspace::cudnn) where the GPU has
// room.
bool has_room(int64_t bytes) {
  if (bytes <= workspace_size()) return true;
  constexpr size_t kLeft = size_t{512} << 20;
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the GPU's free memory");
  return free_bytes >= static_cast<size_t>(bytes) + kLeft;
}

// Plans are for few sizes: ragged batches have new ones each time.
int64_t few_sizes(int64_t count) {
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(count, 8))));
  return round_up(std::max<int64_t>(count, 8), floor / 4);
}

bool has_rows_for_cudnn(const Tensor& t, DType type) {
  return t.type == type && (type == DType::bf16 || type == DType::f16) &&
         reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride % 8 == 0 &&
         t.rows * t.stride < std::numeric_limits<int32_t>::max();
}

// What cuDNN has to be asked for; none: it cannot.
std::optional<AttentionLayout> layout_of(const AttentionForward& op) {
  const AttentionShape& shape = op.shape;
  if (cudnn() == nullptr) {
    refused(cudnn_missing());
    return std::nullopt;
  }
  const bool fits = shape.head_width % 8 == 0 && shape.head_width <= 128 && has_rows_for_cudnn(op.q, op.q.type) &&
                    has_rows_for_cudnn(op.k, op.q.type) && has_rows_for_cudnn(op.v, op.q.type) &&
                    has_rows_for_cudnn(op.y, op.q.type) && op.k.stride == op.v.stride;
  const bool is_self = op.k_begin == op.queries.starts && op.k_end == op.queries.starts + 1 && op.q.rows == op.k.rows;
  if (!fits || !is_self || op.dropout.probability > 0 || op.queries.sequences == 0 || op.q.rows == 0) {
    refused("not self-attention of bf16 or f16 heads in whole 16 bytes, at most 128 wide, without dropout");
    return std::nullopt;
  }
  AttentionLayout layout;
  layout.type = op.q.type == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  const bool needs_mask = op.queries.longest % kLengthsStep != 0 && cudnn()->version < kUnmaskedEdges;
  layout.ragged = !op.queries.even || needs_mask;
  layout.batch = layout.ragged ? few_sizes(op.queries.sequences) : op.queries.sequences;
  layout.length = layout.ragged ? round_up(op.queries.longest, kLengthsStep) : op.queries.longest;
  layout.heads = shape.heads;
  layout.kv_heads = shape.kv_heads;
  layout.head_width = shape.head_width;
  layout.q_stride = op.q.stride;
  layout.kv_stride = op.k.stride;
  layout.y_stride = op.y.stride;
  layout.causal = shape.causal;
  layout.keeps_sums = op.log_sum_exp.data != nullptr;
  return layout;
}

// A plan of each layout there was, or why there is none.
template <typename Plan>
struct Kept {
  std::optional<Plan> plan;
  std::string refusal;
};

template <typename Plan>
const Plan* plan_for(std::map<AttentionLayout, Kept<Plan>>& kept, const AttentionLayout& layout,
                     Plan (*make)(const AttentionLayout&)) {
  auto known = kept.find(layout);
  if (known == kept.end()) {
    if (is_captured()) {
      refused("a graph is recorded, and there is no plan yet");
      return nullptr;
    }
    known = kept.try_emplace(layout).first;
    try {
      Plan made = make(layout);
      if (made.plan.workspace_bytes() > kMostCudnnBytes) throw CudnnRefusal("it takes too much memory");
      known->second.plan.emplace(std::move(made));
    } catch (const CudnnRefusal& refusal) {
      known->second.refusal = refusal.what();
    }
  }
  if (!known->second.plan) refused(known->second.refusal);
  return known->second.plan ? &*known->second.plan : nullptr;
}

using Pointers = std::vector<std::pair<int64_t, void*>>;

int64_t rounded(int64_t bytes) { return round_up(bytes, WorkspaceCarver::kAlignment); }

// Lengths and offsets of ragged sequences, in the order the strides are asked for.
class Places {
 public:
  Places(const AttentionLayout& layout, std::initializer_list<std::pair<int64_t, int64_t>> ids_and_strides)
      : layout_(layout), wanted_(ids_and_strides) {}
  int64_t bytes() const {
    if (!layout_.ragged) return 0;
    return rounded((static_cast<int64_t>(wanted_.size()) + 1) * places_of_offsets(layout_.batch) * 4);
  }
  void fill(const RowSet& rows, void* memory, int64_t lengths_id, Pointers& pointers) const {
    if (!layout_.ragged) return;
    const int64_t apart = places_of_offsets(layout_.batch);
    SequencePlaces places;
    places.lengths = static_cast<int32_t*>(memory);
    places.offsets = places.lengths + apart;
    pointers.emplace_back(lengths_id, places.lengths);
    for (const auto& [id, stride] : wanted_) {
      pointers.emplace_back(id, places.offsets + places.count * apart);
      places.strides[places.count++] = stride;
    }
    place_sequences(rows, layout_.batch, places);
  }

 private:
  const AttentionLayout& layout_;
  std::vector<std::pair<int64_t, int64_t>> wanted_;
};

// Numbers that plans read on the host.
struct Scalars {
  float scale, least = std::numeric_limits<float>::lowest(), one = 1;
  explicit Scalars(float by) : scale(by) {}
  void add(int64_t scale_id, int64_t least_id, Pointers& pointers) {
    pointers.emplace_back(scale_id, &scale);
    if (least_id > 0) pointers.emplace_back(least_id, &least);
  }
};

// False where the library fails, of which nothing is known to be written.
bool run_plan(const CudnnPlan& plan, const Pointers& pointers, void* workspace) {
  try {
    plan.run(pointers, workspace);
  } catch (const CudnnRefusal& refusal) {
    return refused(refusal.what());
  }
  engine_said() = plan.name();
  return true;
}

}  // namespace

int64_t attention_library_version() { return cudnn() == nullptr ? 0 : cudnn()->version; }
const std::string& attention_refusal() { return refusal_said(); }
const std::string& attention_engine() { return engine_said(); }

bool attention_forward_cudnn(const AttentionForward& op) {
  static std::map<AttentionLayout, Kept<AttentionForwardPlan>> plans;
  const std::optional<AttentionLayout> layout = layout_of(op);
  if (!layout) return false;
  const AttentionForwardPlan* p = plan_for(plans, *layout, plan_attention_forward);
  if (p == nullptr) return false;
  const Places places(*layout, {{p->q_offsets, op.q.stride},
                                {p->kv_offsets, op.k.stride},
                                {p->y_offsets, op.y.stride},
                                {p->sums_offsets, layout->keeps_sums ? op.log_sum_exp.stride : 0}});
  const bool turns_sums = layout->keeps_sums && !layout->ragged;
  const int64_t sums_bytes = turns_sums ? rounded(op.q.rows * op.shape.heads * 4) : 0;
  const int64_t own_bytes = rounded(p->plan.workspace_bytes());
  if (!has_room(own_bytes + sums_bytes + places.bytes())) return refused("its workspace does not fit the GPU");
  WorkspaceCarver carver(own_bytes + sums_bytes + places.bytes());
  void* own = carver.take(own_bytes);
  auto* by_head = static_cast<float*>(carver.take(sums_bytes));
  Scalars scalars(op.shape.scale);
  Pointers pointers = {{p->q, op.q.data}, {p->k, op.k.data}, {p->v, op.v.data}, {p->y, op.y.data}};
  scalars.add(p->scale, p->least, pointers);
  if (layout->keeps_sums) pointers.emplace_back(p->sums, turns_sums ? by_head : op.log_sum_exp.data);
  places.fill(op.queries, carver.take(places.bytes()), p->lengths, pointers);
  if (!run_plan(p->plan, pointers, own)) return false;
  if (turns_sums) sums_by_row(op.queries, by_head, op.log_sum_exp);
  if (layout->ragged) clear_spare_rows(op.queries, op.y);
  return true;
}

bool attention_backward_cudnn(const AttentionBackward& op, bool deterministic) {
  static std::map<AttentionLayout, Kept<AttentionBackwardPlan>> plans;
  const AttentionForward& forward = op.forward;
  std::optional<AttentionLayout> layout = layout_of(forward);
  if (!layout) return false;
  const bool fits = has_rows_for_cudnn(op.dy, forward.q.type) && has_rows_for_cudnn(op.dq, forward.q.type) &&
                    has_rows_for_cudnn(op.dk, forward.q.type) && has_rows_for_cudnn(op.dv, forward.q.type) &&
                    op.dk.stride == op.dv.stride;
  if (!fits || !layout->keeps_sums) return refused("gradients of other strides than each other");
  layout->dq_stride = op.dq.stride;
  layout->dkv_stride = op.dk.stride;
  layout->dy_stride = op.dy.stride;
  layout->deterministic = deterministic;
  const AttentionBackwardPlan* p = plan_for(plans, *layout, plan_attention_backward);
  if (p == nullptr) return false;
  const Places places(*layout, {{p->q_offsets, forward.q.stride},
                                {p->kv_offsets, forward.k.stride},
                                {p->y_offsets, forward.y.stride},
                                {p->sums_offsets, forward.log_sum_exp.stride},
                                {p->dq_offsets, op.dq.stride},
                                {p->dkv_offsets, op.dk.stride},
                                {p->dy_offsets, op.dy.stride}});
  const int64_t own_bytes = rounded(p->plan.workspace_bytes());
  const int64_t row_bytes = rounded(layout->batch * layout->heads * layout->length * 4);
  const int64_t sums_bytes = layout->ragged ? 0 : row_bytes;
  const int64_t dq_bytes = deterministic ? 0 : row_bytes * layout->head_width;
  const int64_t bytes = own_bytes + row_bytes + sums_bytes + dq_bytes + places.bytes();
  if (!has_room(bytes)) return refused("its workspace does not fit the GPU");
  WorkspaceCarver carver(bytes);
  void* own = carver.take(own_bytes);
  auto* by_head = static_cast<float*>(carver.take(sums_bytes));
  Scalars scalars(forward.shape.scale);
  Pointers pointers = {{p->q, forward.q.data},
                       {p->k, forward.k.data},
                       {p->v, forward.v.data},
                       {p->y, forward.y.data},
                       {p->dy, op.dy.data},
                       {p->dq, op.dq.data},
                       {p->dk, op.dk.data},
                       {p->dv, op.dv.data},
                       {p->sums, layout->ragged ? forward.log_sum_exp.data : by_head},
                       {p->one, &scalars.one},
                       {p->products, carver.take(row_bytes)}};
  scalars.add(p->scale, p->least, pointers);
  if (!deterministic) pointers.emplace_back(p->dq_sums, carver.take(dq_bytes));
  places.fill(forward.queries, carver.take(places.bytes()), p->lengths, pointers);
  if (!layout->ragged) sums_by_head(forward.queries, forward.log_sum_exp, by_head);
  if (!run_plan(p->plan, pointers, own)) return false;
  if (layout->ragged) {
    for (const Tensor* t : {&op.dq, &op.dk, &op.dv}) clear_spare_rows(forward.queries, *t);
  }
  return true;
}

}  // namespace brisk::cuda
