#include "ops/attention/cuda/attention_graph_cuda.h"

namespace brisk::cuda {

namespace {

// The tensors both graphs have.
class AttentionGraph {
 public:
  explicit AttentionGraph(const AttentionLayout& layout) : l(layout) {
    if (l.ragged) {
      lengths = graph.memory(packed({l.batch, 1, 1, 1}), CUDNN_DATA_INT32);
      q_offsets = offsets();
      kv_offsets = offsets();
      y_offsets = offsets();
      sums_offsets = offsets();
    }
    q = rows(l.heads, l.q_stride, q_offsets);
    y = rows(l.heads, l.y_stride, y_offsets);
    scale = graph.scalar(CUDNN_DATA_FLOAT);
    if (l.ragged || l.causal) least = graph.scalar(CUDNN_DATA_FLOAT);
  }

  CudnnTensor offsets() { return graph.memory(packed({l.batch + 1, 1, 1, 1}), CUDNN_DATA_INT32); }

  CudnnShape shape_of_rows(int64_t heads, int64_t stride) const {
    return {{l.batch, heads, l.length, l.head_width}, {l.length * stride, l.head_width, stride, 1}};
  }
  CudnnTensor rows(int64_t heads, int64_t stride, const CudnnTensor& at) {
    return graph.memory(shape_of_rows(heads, stride), l.type, at);
  }
  // As the right operand of a product with its transpose.
  CudnnTensor turned_rows(int64_t heads, int64_t stride, const CudnnTensor& at) {
    return graph.memory(transposed(shape_of_rows(heads, stride)), l.type, at);
  }
  CudnnShape scores_shape() const { return packed({l.batch, l.heads, l.length, l.length}); }
  CudnnShape row_numbers() const { return packed({l.batch, l.heads, l.length, 1}); }
  CudnnTensor sums() {
    const CudnnShape by_rows = {row_numbers().dims, {l.length * l.heads, 1, l.heads, 1}};
    return graph.memory(l.ragged ? by_rows : row_numbers(), CUDNN_DATA_FLOAT, sums_offsets);
  }

  CudnnTensor index(const CudnnTensor& scores, int64_t axis, cudnnDataType_t computes) {
    return graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, {},
                           {.y = graph.passing(scores.shape, CUDNN_DATA_INT32), .computes = computes, .axis = axis});
  }
  CudnnTensor compare(cudnnPointwiseMode_t mode, const CudnnTensor& a, const CudnnTensor& b) {
    return graph.pointwise(mode, a, b,
                           {.y = graph.passing(scores_shape(), CUDNN_DATA_BOOLEAN), .computes = CUDNN_DATA_BOOLEAN});
  }
  CudnnTensor select(const CudnnTensor& scores, const CudnnTensor& where) {
    return graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, least, {.select = where});
  }
  // Scores that do not count become the least number.
  CudnnTensor masked(CudnnTensor scores) {
    if (l.ragged) {
      const CudnnTensor row = index(scores, 2, CUDNN_DATA_INT32), column = index(scores, 3, CUDNN_DATA_INT32);
      const CudnnTensor row_counts = compare(CUDNN_POINTWISE_CMP_LT, row, lengths);
      const CudnnTensor column_counts = compare(CUDNN_POINTWISE_CMP_LT, column, lengths);
      scores = select(scores, compare(CUDNN_POINTWISE_LOGICAL_AND, row_counts, column_counts));
    }
    if (l.causal) {
      const CudnnTensor row = index(scores, 2, CUDNN_DATA_FLOAT), column = index(scores, 3, CUDNN_DATA_FLOAT);
      scores = select(scores, compare(CUDNN_POINTWISE_CMP_GE, row, column));
    }
    return scores;
  }

  CudnnGraph graph;
  const AttentionLayout l;
  CudnnTensor q, y, scale, least, lengths, q_offsets, kv_offsets, y_offsets, sums_offsets;
};

}  // namespace

AttentionForwardPlan plan_attention_forward(const AttentionLayout& layout) {
  AttentionGraph g(layout);
  CudnnGraph& graph = g.graph;
  const CudnnTensor k = g.turned_rows(layout.kv_heads, layout.kv_stride, g.kv_offsets);
  const CudnnTensor v = g.rows(layout.kv_heads, layout.kv_stride, g.kv_offsets);
  const CudnnTensor sums = layout.keeps_sums ? g.sums() : graph.passing(g.row_numbers());

  const CudnnTensor products = graph.passing(g.scores_shape());
  graph.multiply(g.q, k, products, {.m = g.lengths, .n = g.lengths});
  const CudnnTensor scores = g.masked(graph.pointwise(CUDNN_POINTWISE_MUL, products, g.scale));
  const CudnnTensor largest = graph.passing(g.row_numbers()), sum = graph.passing(g.row_numbers());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const CudnnTensor powers =
      graph.pointwise(CUDNN_POINTWISE_EXP, graph.pointwise(CUDNN_POINTWISE_SUB, scores, largest));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, graph.pointwise(CUDNN_POINTWISE_LOG, sum), {.y = sums});
  const CudnnTensor weights = graph.passing(g.scores_shape(), layout.type);
  graph.pointwise(CUDNN_POINTWISE_DIV, powers, sum, {.y = weights});
  graph.multiply(weights, v, g.y, {.m = g.lengths, .k = g.lengths});
  return {.q = g.q.id,
          .k = k.id,
          .v = v.id,
          .y = g.y.id,
          .scale = g.scale.id,
          .least = g.least.id,
          .sums = layout.keeps_sums ? sums.id : 0,
          .lengths = g.lengths.id,
          .q_offsets = g.q_offsets.id,
          .kv_offsets = g.kv_offsets.id,
          .y_offsets = g.y_offsets.id,
          .sums_offsets = g.sums_offsets.id,
          .plan = graph.plan()};
}

AttentionBackwardPlan plan_attention_backward(const AttentionLayout& layout) {
  AttentionGraph g(layout);
  CudnnGraph& graph = g.graph;
  const CudnnTensor k = g.turned_rows(layout.kv_heads, layout.kv_stride, g.kv_offsets);
  const CudnnTensor v = g.turned_rows(layout.kv_heads, layout.kv_stride, g.kv_offsets);
  const CudnnTensor sums = g.sums(), one = graph.scalar(CUDNN_DATA_FLOAT);
  const CudnnTensor dq_offsets = layout.ragged ? g.offsets() : CudnnTensor{};
  const CudnnTensor dkv_offsets = layout.ragged ? g.offsets() : CudnnTensor{};
  const CudnnTensor dy_offsets = layout.ragged ? g.offsets() : CudnnTensor{};
  const CudnnTensor dy = g.rows(layout.heads, layout.dy_stride, dy_offsets);
  const CudnnTensor dq = g.rows(layout.heads, layout.dq_stride, dq_offsets);
  const CudnnTensor dk = g.rows(layout.kv_heads, layout.dkv_stride, dkv_offsets);
  const CudnnTensor dv = g.rows(layout.kv_heads, layout.dkv_stride, dkv_offsets);

  // dy.y of every row.
  const CudnnShape packed_rows = packed({layout.batch, layout.heads, layout.length, layout.head_width});
  const CudnnTensor dy_y = graph.pointwise(CUDNN_POINTWISE_MUL, dy, g.y, {.y = graph.passing(packed_rows)});
  const CudnnTensor unscaled = graph.passing(g.row_numbers());
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, dy_y, unscaled);
  const CudnnTensor products = graph.memory(g.row_numbers(), CUDNN_DATA_FLOAT);
  graph.pointwise(CUDNN_POINTWISE_MUL, unscaled, one, {.y = products});

  // The weights again, and dv.
  const CudnnTensor raw = graph.passing(g.scores_shape());
  graph.multiply(g.q, k, raw, {.m = g.lengths, .n = g.lengths});
  const CudnnTensor scores = graph.pointwise(CUDNN_POINTWISE_MUL, raw, g.scale);
  const CudnnTensor weights =
      graph.pointwise(CUDNN_POINTWISE_EXP, g.masked(graph.pointwise(CUDNN_POINTWISE_SUB, scores, sums)));
  // Sums over query heads that share a key head.
  const auto over_queries = [&](const CudnnTensor& of_scores, const CudnnTensor& by, const CudnnTensor& result) {
    const CudnnShape by_keys = transposed(g.scores_shape());
    const CudnnTensor turned = graph.passing(by_keys, layout.type);
    graph.reshape(of_scores, turned);
    const bool grouped = layout.heads != layout.kv_heads;
    const CudnnTensor all = grouped ? graph.passing(packed_rows, layout.type) : result;
    graph.multiply(turned, by, all, {.m = g.lengths, .k = g.lengths});
    if (grouped) graph.reduce(CUDNN_REDUCE_TENSOR_ADD, all, result);
  };
  over_queries(weights, dy, dv);

  // The scores' gradients, dk and dq.
  const CudnnTensor dweights = graph.passing(g.scores_shape());
  graph.multiply(dy, v, dweights, {.m = g.lengths, .n = g.lengths});
  const CudnnTensor dscores = graph.pointwise(
      CUDNN_POINTWISE_MUL,
      graph.pointwise(CUDNN_POINTWISE_MUL, graph.pointwise(CUDNN_POINTWISE_SUB, dweights, products), weights), g.scale);
  over_queries(dscores, g.q, dk);
  const CudnnTensor keys = graph.passing(transposed(k.shape), layout.type, g.kv_offsets);
  graph.reshape(k, keys);
  CudnnTensor dq_sums;
  if (layout.deterministic) {
    graph.multiply(dscores, keys, dq, {.m = g.lengths, .k = g.lengths});
  } else {
    dq_sums = graph.memory(packed_rows, CUDNN_DATA_FLOAT);
    graph.multiply(dscores, keys, dq_sums, {.m = g.lengths, .k = g.lengths});
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sums, {}, {.y = dq});
  }
  return {.q = g.q.id,
          .k = k.id,
          .v = v.id,
          .y = g.y.id,
          .dy = dy.id,
          .sums = sums.id,
          .scale = g.scale.id,
          .least = g.least.id,
          .one = one.id,
          .dq = dq.id,
          .dk = dk.id,
          .dv = dv.id,
          .products = products.id,
          .dq_sums = dq_sums.id,
          .lengths = g.lengths.id,
          .q_offsets = g.q_offsets.id,
          .kv_offsets = g.kv_offsets.id,
          .y_offsets = g.y_offsets.id,
          .sums_offsets = g.sums_offsets.id,
          .dq_offsets = dq_offsets.id,
          .dkv_offsets = dkv_offsets.id,
          .dy_offsets = dy_offsets.id,
          .plan = graph.plan()};
}

}  // namespace brisk::cuda
