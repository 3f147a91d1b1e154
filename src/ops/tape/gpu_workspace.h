// GPU memory that ops use outside of a program's arena: a workspace that all of them share in turn, and one for matrix
// products. Its size is known from the tape, so that whether a job fits is known before anything is allocated; and
// reserved before the first step, so that nothing grows later.
//
//   const int64_t bytes = gpu_workspace_bytes(tape);        // as much as its most demanding op needs
//   BRISK_RUN_ON_GPU(reserve_workspace, bytes);
#pragma once

#include <cstdint>

#include "base/rounding.h"
#include "tensor/tape.h"

namespace brisk {

// Of cuBLASLt, for products of which several blocks share a result (split-K, stream-K): two of 64 MiB, since two
// products may run side by side. NVIDIA asks for 32 MiB each on Hopper; with 64 more algorithms are candidates.
constexpr int64_t kGemmWorkspaceBytes = int64_t{128} << 20;

// What an op says of itself (Op::gpu_workspace) is a sum of pieces, each aligned.
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t workspace_piece(int64_t bytes) { return round_up(bytes, kWorkspaceAlignment); }
// Sums over rows of a matrix, such as a bias's gradient, by chunks of rows (cuda::linear_partial_floats): a fixed number
// of blocks divides the matrix.
constexpr int64_t column_sums_bytes(int64_t columns) {
  constexpr int64_t kBlocksWanted = 1024, kColumnsOfBlock = 256;
  return workspace_piece((columns + kBlocksWanted * kColumnsOfBlock) * size_of(DType::f32));
}

// Of the shared workspace. At least what ops ask for at the tape's capacity; a little more where that depends on the
// GPU's number of multiprocessors.
int64_t gpu_workspace_bytes(const Tape& tape);
// What it grows to where cuDNN's attention is tried, which is not reserved and happens only where the GPU has room; 0
// where it never is. Of sequences that are all as long as the longest; many short ones together with a long one need
// more.
int64_t gpu_cudnn_bytes(const Tape& tape);
// Of a second workspace, for the operands of linear layers that multiply in eight bits (GemmFormat::fp8).
int64_t gpu_operand_bytes(const Tape& tape);

namespace cuda {
void reserve_workspace(int64_t bytes);  // outside of a capture
void reserve_operand_workspace(int64_t bytes);
int64_t workspace_size();  // bytes of the shared one, so far
// Gives all of them back, the products' too; the next op that wants one makes it anew. No graph that was recorded with
// them may run any more: only between engines.
void release_workspaces();
void* gemm_workspace();  // half of kGemmWorkspaceBytes: products that run side by side have one each
}  // namespace cuda

}  // namespace brisk
