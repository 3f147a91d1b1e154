#include "ops/tape/gpu_workspace.h"

#include <algorithm>

namespace brisk {

namespace {

int64_t most_of_an_op(const Tape& tape, int64_t GpuWorkspace::*part) {
  int64_t most = 0;
  for (const Node& node : tape.nodes()) most = std::max(most, node.op->gpu_workspace(tape, node).*part);
  return round_up(most, int64_t{2} << 20);
}

}  // namespace

int64_t gpu_workspace_bytes(const Tape& tape) { return most_of_an_op(tape, &GpuWorkspace::shared); }
int64_t gpu_cudnn_bytes(const Tape& tape) { return most_of_an_op(tape, &GpuWorkspace::cudnn); }
int64_t gpu_operand_bytes(const Tape& tape) { return most_of_an_op(tape, &GpuWorkspace::operands); }

}  // namespace brisk
