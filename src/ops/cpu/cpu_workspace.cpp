#include "ops/cpu/cpu_workspace.h"

#include <algorithm>
#include <map>

#include "base/rounding.h"
#include "ops/cpu/row_blocks.h"

namespace brisk {

int64_t cpu_workspace_bytes(const Tape& tape) {
  std::map<OpFamily, int64_t> most;
  for (const Node& node : tape.nodes()) {
    int64_t& bytes = most[node.op->family()];
    bytes = std::max(bytes, node.op->cpu_workspace(tape, node));
  }
  int64_t sum = 0;
  for (const auto& [family, bytes] : most) sum += bytes;
  return sum;
}

int64_t column_sums_workspace_bytes(int64_t rows, int64_t columns) {
  return RowBlocks(rows).count * round_up(columns, 16) * size_of(DType::f32);
}

int64_t cpu::product_workspace_bytes(int64_t rows, int64_t inputs, int64_t outputs, DType x_type, DType product_type) {
  const Arithmetic arithmetic = product_type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
  const GemmOperand x{.type = x_type}, x_across{.type = x_type, .transposed = true};
  const GemmOperand weight{.type = product_type}, weight_across{.type = product_type, .transposed = true};
  return std::max({gemm_workspace_bytes(rows, outputs, inputs, x, weight_across, false, arithmetic),
                   gemm_workspace_bytes(rows, inputs, outputs, x, weight, false, arithmetic),
                   gemm_workspace_bytes(outputs, inputs, rows, x_across, x, true, arithmetic)});
}

}  // namespace brisk
