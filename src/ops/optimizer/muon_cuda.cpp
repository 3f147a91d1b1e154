// Matrices of one shape are orthogonalised together, by products in batches.
#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/optimizer/muon_elementwise_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;  // of a group: bounds the workspace

std::vector<MuonGroup> groups_of(std::span<const MuonMatrix> matrices) {
  std::map<std::pair<int64_t, int64_t>, std::vector<MuonMatrix>> by_shape;
  for (const MuonMatrix& matrix : matrices) by_shape[{matrix.rows, matrix.cols}].push_back(matrix);
  std::vector<MuonGroup> groups;
  for (const auto& [shape, alike] : by_shape) {
    const int64_t most = std::clamp<int64_t>(kMostElements / (shape.first * shape.second), 1, MuonGroup::kMost);
    const int64_t parts = divide_up(std::ssize(alike), most);
    const int64_t each = divide_up(std::ssize(alike), parts);
    for (int64_t first = 0; first < std::ssize(alike); first += each) {
      MuonGroup group;
      group.rows = shape.first;
      group.cols = shape.second;
      group.count = std::min(each, std::ssize(alike) - first);
      std::copy_n(alike.begin() + first, group.count, group.matrices);
      groups.push_back(group);
    }
  }
  return groups;
}

int64_t shorter_side(const MuonGroup& group) { return std::min(group.rows, group.cols); }
int64_t aligned_floats(int64_t floats) { return round_up(floats, 64); }

// The sums of squares, X twice, the Gram matrix and its polynomial.
int64_t floats_for(const MuonGroup& group) {
  const int64_t side = shorter_side(group);
  return aligned_floats(2 * group.count * kMuonPartials) + 2 * aligned_floats(group.count * group.rows * group.cols) +
         2 * aligned_floats(group.count * side * side);
}

void multiply_or_fail(GemmProblem p, Arithmetic arithmetic) {
  p.tf32 = arithmetic == Arithmetic::tf32;
  BRISK_CHECK(multiply(p), "cuBLASLt cannot multiply [{}, {}] by [{}, {}], {} at once", p.m, p.k, p.k, p.n, p.batch);
}

void update_group(const MuonUpdate& op, const MuonGroup& group) {
  const DType type = op.arithmetic == Arithmetic::bf16 ? DType::bf16 : DType::f32;
  const int64_t rows = group.rows, cols = group.cols, side = shorter_side(group), count = group.count;
  float* at = op.workspace;
  const auto take = [&](int64_t floats) {
    float* taken = at;
    at += aligned_floats(floats);
    return taken;
  };
  auto* partials = reinterpret_cast<double*>(take(2 * count * kMuonPartials));
  Tensor x = matrix(take(count * rows * cols), type, rows, cols);
  Tensor next = matrix(take(count * rows * cols), type, rows, cols);
  const Tensor gram = matrix(take(count * side * side), type, side, side);
  const Tensor polynomial = matrix(take(count * side * side), type, side, side);
  const MuonPass pass{op.momentum, op.decay, op.rate, op.gradient_scale, op.step};
  muon_directions(group, pass, partials, x);
  const bool wide = rows <= cols;
  for (int round = 0; round < kMuonRounds; ++round) {
    const int64_t x_distance = rows * cols, gram_distance = side * side;
    multiply_or_fail({.m = side,
                      .n = side,
                      .k = std::max(rows, cols),
                      .a = operand(x, !wide),
                      .b = operand(x, wide),
                      .c = gram,
                      .batch = count,
                      .a_distance = x_distance,
                      .b_distance = x_distance,
                      .c_distance = gram_distance},
                     op.arithmetic);
    multiply_or_fail({.m = side,
                      .n = side,
                      .k = side,
                      .a = operand(gram),
                      .b = operand(gram),
                      .c = polynomial,
                      .factor = kMuonC,
                      .addend = gram,
                      .addend_factor = kMuonB,
                      .batch = count,
                      .a_distance = gram_distance,
                      .b_distance = gram_distance,
                      .c_distance = gram_distance},
                     op.arithmetic);
    multiply_or_fail({.m = rows,
                      .n = cols,
                      .k = side,
                      .a = operand(wide ? polynomial : x),
                      .b = operand(wide ? x : polynomial),
                      .c = next,
                      .addend = x,
                      .addend_factor = kMuonA,
                      .batch = count,
                      .a_distance = wide ? gram_distance : x_distance,
                      .b_distance = wide ? x_distance : gram_distance,
                      .c_distance = x_distance},
                     op.arithmetic);
    std::swap(x, next);
  }
  muon_apply(group, pass, x);
}

}  // namespace

int64_t muon_workspace_floats(std::span<const MuonMatrix> matrices) {
  int64_t most = 0;
  for (const MuonGroup& group : groups_of(matrices)) most = std::max(most, floats_for(group));
  return most;
}

void muon_update(const MuonUpdate& op) {
  for (const MuonGroup& group : groups_of(op.matrices)) update_group(op, group);
}

}  // namespace brisk::cuda
