#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rounding.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "ops/optimizer/muon_kernels.h"

namespace brisk::cpu {

namespace {

// Sums of squares are taken over blocks of this many elements, and then over the blocks in order, so that they do not
// depend on who computed which.
constexpr int64_t kBlock = 4096;

struct Passes {
  decltype(&ref::muon_momentum_range) momentum = ref::muon_momentum_range;
  decltype(&ref::muon_direction_range) direction = ref::muon_direction_range;
  decltype(&ref::muon_polynomial_rows) polynomial = ref::muon_polynomial_rows;
  decltype(&ref::muon_apply_range) apply = ref::muon_apply_range;
};

Passes active_passes() {
  if (!has_vector_kernels()) return {};
  return {BRISK_ACTIVE_ISA(muon_momentum_range), BRISK_ACTIVE_ISA(muon_direction_range),
          BRISK_ACTIVE_ISA(muon_polynomial_rows), BRISK_ACTIVE_ISA(muon_apply_range)};
}

int64_t shorter(const MuonMatrix& matrix) { return std::min(matrix.rows, matrix.cols); }
int64_t blocks_of(const MuonMatrix& matrix) { return divide_up(matrix.rows * matrix.cols, kBlock); }
int64_t whole_lines(int64_t floats) { return round_up(floats, 16); }  // of the cache

// A double for each block's sum, X twice, the Gram matrix and its square.
int64_t floats_of(const MuonMatrix& matrix) {
  const int64_t n = shorter(matrix);
  return whole_lines(2 * blocks_of(matrix)) + 2 * whole_lines(matrix.rows * matrix.cols) + 2 * whole_lines(n * n);
}

// Arithmetic of one matrix: two products with the Gram matrix's side and its length, one of its side alone.
double work_of(const MuonMatrix& matrix) {
  const double n = static_cast<double>(shorter(matrix));
  return n * static_cast<double>(2 * matrix.rows * matrix.cols) + n * n * n;
}

// One matrix, by the whole thread pool or by the calling thread alone.
class MatrixUpdate {
 public:
  MatrixUpdate(const MuonUpdate& op, const Passes& passes, const MuonMatrix& matrix, float* workspace, bool alone)
      : op_(op), passes_(passes), matrix_(matrix), alone_(alone), count_(matrix.rows * matrix.cols) {
    const int64_t n = shorter(matrix);
    sums_ = reinterpret_cast<double*>(workspace);
    x_ = workspace + whole_lines(2 * blocks_of(matrix));
    next_ = x_ + whole_lines(count_);
    gram_ = next_ + whole_lines(count_);
    square_ = gram_ + whole_lines(n * n);
  }

  void run() {
    set_direction();
    for (int round = 0; round < kMuonRounds; ++round) improve();
    const double shape =
        std::sqrt(std::max(1.0, static_cast<double>(matrix_.rows) / static_cast<double>(matrix_.cols)));
    const float keep = 1 - op_.rate * op_.decay, step = static_cast<float>(op_.rate * shape);
    share(count_, kBlock, [&](int64_t begin, int64_t end) { passes_.apply(matrix_, x_, keep, step, begin, end); });
  }

 private:
  template <typename Body>
  void share(int64_t count, int64_t grain, const Body& body) const {
    if (alone_) return body(0, count);
    thread_pool().for_range(count, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }

  void set_direction() {
    const MuonDirection direction{&matrix_, op_.momentum, op_.gradient_scale};
    share(blocks_of(matrix_), 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        sums_[block] = passes_.momentum(direction, block * kBlock, std::min(count_, (block + 1) * kBlock));
      }
    });
    const double norm = std::sqrt(std::accumulate(sums_, sums_ + blocks_of(matrix_), 0.0));
    const float scale = norm > 0 ? static_cast<float>(1 / norm) : 0.0f;
    share(count_, kBlock, [&](int64_t begin, int64_t end) { passes_.direction(direction, scale, x_, begin, end); });
  }

  void improve() {
    const int64_t R = matrix_.rows, C = matrix_.cols, n = shorter(matrix_);
    const bool tall = R > C;
    const GemmOperand x{x_, DType::f32, C, false}, x_turned{x_, DType::f32, C, true};
    const GemmOperand gram{gram_, DType::f32, n, false}, square{square_, DType::f32, n, false};
    multiply(n, n, tall ? R : C, tall ? x_turned : x, tall ? x : x_turned, gram_);
    multiply(n, n, n, gram, gram, square_);
    share(n, 16, [&](int64_t begin, int64_t end) { passes_.polynomial({gram_, square_, n}, begin, end); });
    multiply(R, C, n, tall ? x : square, tall ? square : x, next_);
    std::swap(x_, next_);
  }

  void multiply(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, float* c) const {
    const GemmEpilogue epilogue{.c = matrix(c, DType::f32, m, n)};
    (alone_ ? gemm_alone : gemm)(m, n, k, a, b, epilogue, op_.arithmetic);
  }

  const MuonUpdate& op_;
  const Passes& passes_;
  const MuonMatrix& matrix_;
  const bool alone_;
  const int64_t count_;
  double* sums_;
  float *x_, *next_, *gram_, *square_;
};

// Positions of the matrices, most work first.
std::vector<size_t> by_work(std::span<const MuonMatrix> matrices) {
  std::vector<size_t> order(matrices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return work_of(matrices[a]) > work_of(matrices[b]); });
  return order;
}

// Is it quicker that each thread takes whole matrices? Products of a few hundred rows keep a thread pool waiting for each
// other, but a matrix of its own for each thread helps only where there are enough of them.
bool one_thread_each(std::span<const MuonMatrix> matrices, const std::vector<size_t>& order, int threads) {
  if (threads == 1 || !can_gemm_alone()) return false;
  std::vector<double> busy(static_cast<size_t>(threads), 0.0);
  double all = 0;
  for (const size_t i : order) {
    *std::min_element(busy.begin(), busy.end()) += work_of(matrices[i]);
    all += work_of(matrices[i]);
  }
  return *std::max_element(busy.begin(), busy.end()) < 2 * all / threads;
}

int64_t most_floats(std::span<const MuonMatrix> matrices) {
  int64_t most = 0;
  for (const MuonMatrix& matrix : matrices) most = std::max(most, floats_of(matrix));
  return most;
}

}  // namespace

int64_t muon_workspace_floats(std::span<const MuonMatrix> matrices) {
  const int threads = thread_pool().size();
  return most_floats(matrices) * (one_thread_each(matrices, by_work(matrices), threads) ? threads : 1);
}

void muon_update(const MuonUpdate& op) {
  const Passes passes = active_passes();
  const std::vector<size_t> order = by_work(op.matrices);
  ThreadPool& pool = thread_pool();
  if (!one_thread_each(op.matrices, order, pool.size())) {
    for (const size_t i : order) MatrixUpdate(op, passes, op.matrices[i], op.workspace, false).run();
    return;
  }
  const int64_t floats = most_floats(op.matrices);
  std::atomic<size_t> taken = 0;
  pool.run_parts([&](int part) {
    for (size_t i = taken.fetch_add(1); i < order.size(); i = taken.fetch_add(1)) {
      MatrixUpdate(op, passes, op.matrices[order[i]], op.workspace + part * floats, true).run();
    }
  });
}

}  // namespace brisk::cpu
