// linear on the GPU with operands of eight bits: activations and weights in e4m3, gradients in e5m2. Forward makes
// what backward multiplies, too, where it has a place to keep it: one pass instead of two over x and the weight.
#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda/side_stream_cuda.h"
#include "ops/cuda/workspace_cuda.h"
#include "ops/gemm/cuda/fp8_cuda.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_elementwise_cuda.h"

namespace brisk::cuda {

namespace {

int64_t fp8_carved(int64_t bytes) { return round_up(bytes, WorkspaceCarver::kAlignment); }

// What cuBLASLt can write: rows of whole 16 bytes.
bool can_be_written(const Tensor& t) {
  return !t || (reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride * size_of(t.type) % 16 == 0);
}

// One matrix in eight bits, along its rows, its columns, or both.
struct Fp8Matrix {
  Tensor from;
  DType type = DType::e4m3;
  bool wants_rows = false, wants_columns = false;
  Tensor sums = {};  // [1, cols] f32 of its columns, or none
  bool sums_add = false;
  void* kept_columns = nullptr;  // where they lie already or shall lie, with their factor; or none
  float* kept_scale = nullptr;
  GemmOperand rows = {}, columns = {};  // as the left operand is read; the right one is their transpose
  ToFp8 op = {};

  int64_t padded_rows() const { return round_up(from.rows, kFp8Multiple); }
  int64_t bytes() const {
    return (wants_rows ? fp8_carved(from.rows * from.cols) : 0) +
           (wants_columns && kept_columns == nullptr ? fp8_carved(padded_rows() * from.cols) : 0) +
           fp8_carved((1 + kMostFp8Partials) * size_of(DType::f32)) + sums_bytes();
  }
  int64_t sums_bytes() const {
    return sums ? fp8_carved(divide_up(from.rows, kFp8TileRows) * from.cols * size_of(DType::f32)) : 0;
  }
  void place(WorkspaceCarver& carver) {
    void* const row_bytes = wants_rows ? carver.take(fp8_carved(from.rows * from.cols)) : nullptr;
    void* column_bytes = kept_columns;
    if (wants_columns && column_bytes == nullptr) column_bytes = carver.take(fp8_carved(padded_rows() * from.cols));
    auto* numbers = static_cast<float*>(carver.take(fp8_carved((1 + kMostFp8Partials) * size_of(DType::f32))));
    float* const scale = kept_scale != nullptr ? kept_scale : numbers;
    rows = {row_bytes, type, from.cols, false, scale};
    columns = {column_bytes, type, padded_rows(), false, scale};
    auto* parts = static_cast<float*>(carver.take(sums_bytes()));
    op = {from,       type,     row_bytes, wants_columns ? column_bytes : nullptr, scale, numbers + 1,
          sums.f32(), sums_add, parts};
  }
  void make() const { to_fp8(op); }
};

// What forward keeps of both for backward.
void keep(const Tensor& kept, Fp8Matrix& x, Fp8Matrix& weight) {
  if (!kept) return;
  char* at = static_cast<char*>(kept.data);
  x.kept_scale = reinterpret_cast<float*>(at);
  weight.kept_scale = x.kept_scale + 32;  // cuBLASLt reads factors from multiples of 16 bytes
  weight.kept_columns = at + 256;
  x.kept_columns = at + 256 + round_up(weight.from.cols * weight.padded_rows(), 256);
}

GemmOperand as_right(GemmOperand operand) {
  operand.transposed = true;
  return operand;
}

bool fits(GemmFormat products, const Tensor& x, const Tensor& weight) {
  return products == GemmFormat::fp8 && weight.type == DType::bf16 && x.rows > 0 && fits_fp8(weight) &&
         weight.rows % kFp8Multiple == 0 && fits_fp8(x);
}

}  // namespace

bool linear_forward_fp8(const LinearForward& op) {
  if (!fits(op.products, op.x, op.weight)) return false;
  const bool keeps = static_cast<bool>(op.fp8_operands);
  Fp8Matrix x{.from = op.x, .wants_rows = true, .wants_columns = keeps};
  Fp8Matrix weight{.from = op.weight, .wants_rows = true, .wants_columns = keeps};
  keep(op.fp8_operands, x, weight);
  WorkspaceCarver carver(x.bytes() + weight.bytes(), operand_workspace(x.bytes() + weight.bytes()));
  x.place(carver);
  weight.place(carver);
  const int64_t n = op.x.rows, outputs = op.weight.rows, inputs = op.weight.cols;
  const GemmOperand right = as_right(weight.rows);
  const DType result = op.before ? op.before.type : op.y.type;
  const bool multiplies = can_be_written(op.y) && can_be_written(op.before) && can_be_written(op.residual) &&
                          can_multiply({.m = n,
                                        .n = outputs,
                                        .k = inputs,
                                        .a = x.rows,
                                        .b = right,
                                        .c = {op.before ? op.before.data : op.y.data, result, n, outputs,
                                              op.before ? op.before.stride : op.y.stride}});
  if (multiplies || keeps) to_fp8(x.op, weight.op);
  if (!multiplies) return false;
  gemm(n, outputs, inputs, x.rows, right, epilogue_of(op), Arithmetic::bf16);
  return true;
}

bool linear_backward_fp8(const LinearBackward& op) {
  const bool scaled = op.activation != Activation::none || op.dropout.active();
  const Tensor du = scaled ? op.scratch : op.dy;
  if (!op.dx && !op.dweight) return false;
  if (!fits(op.products, op.x, op.weight) || !fits_fp8(du) || !can_be_written(op.dx) || !can_be_written(op.dweight)) {
    return false;
  }
  const int64_t n = op.x.rows, outputs = op.weight.rows, inputs = op.weight.cols;
  Fp8Matrix gradient{.from = du, .type = DType::e5m2, .wants_rows = bool{op.dx}, .wants_columns = bool{op.dweight}};
  if (!scaled && op.dbias) {  // otherwise the pass that makes du sums them
    gradient.sums = op.dbias;
    gradient.sums_add = op.dbias_adds;
  }
  Fp8Matrix weight{.from = op.weight, .wants_columns = bool{op.dx}};
  Fp8Matrix x{.from = op.x, .wants_columns = bool{op.dweight}};
  keep(op.fp8_operands, x, weight);
  const bool kept = static_cast<bool>(op.fp8_operands);
  const int64_t bytes = gradient.bytes() + weight.bytes() + x.bytes();
  WorkspaceCarver carver(bytes, operand_workspace(bytes));
  gradient.place(carver);
  weight.place(carver);
  x.place(carver);
  GemmProblem for_dx{.m = n, .n = inputs, .k = outputs, .a = gradient.rows, .b = as_right(weight.columns), .c = op.dx};
  if (op.dx_adds) for_dx.addend = op.dx;
  GemmProblem for_dweight{.m = outputs,
                          .n = inputs,
                          .k = x.padded_rows(),
                          .a = gradient.columns,
                          .b = as_right(x.columns),
                          .c = op.dweight};
  if (op.dweight_adds) for_dweight.addend = op.dweight;
  if ((op.dx && !can_multiply(for_dx)) || (op.dweight && !can_multiply(for_dweight))) return false;

  if (scaled) {
    const int64_t partial_bytes = op.dbias ? fp8_carved(linear_partial_floats(op.dy) * size_of(DType::f32)) : 0;
    WorkspaceCarver partials(partial_bytes);
    LinearGradientPass pass;
    pass.dy = op.dy;
    pass.activation = op.activation;
    if (op.activation != Activation::none) pass.before = op.before;
    pass.dropout = op.dropout;
    pass.rows = op.rows;
    pass.du = du;
    pass.dbias = op.dbias;
    pass.dbias_adds = op.dbias_adds;
    pass.partial = static_cast<float*>(partials.take(partial_bytes));
    linear_gradient_pass(pass);
  }
  gradient.make();
  SideStream side_stream;
  side_stream.queue([&] {
    if (!op.dweight) return;
    if (!kept) x.make();
    BRISK_CHECK(multiply(for_dweight), "cuBLASLt cannot multiply [{}, {}] by [{}, {}] in fp8", outputs, n, n, inputs);
  });
  if (op.dx) {
    if (!kept) weight.make();
    linear_input_gradient(op, for_dx);
  }
  side_stream.join();
  return true;
}

}  // namespace brisk::cuda
