// The variants of attention on a GPU. The fastest is found by timing each once per shape (attention_tuning_cuda.cpp);
// tests and benchmarks choose one.
//
//   if (!cuda::attention_backward(op, AttentionVariant::by_sequence)) ...   // it does not support these heads
//
// BRISK_CUDA_ATTENTION=own never uses cuDNN, =cudnn uses it wherever it applies.
#pragma once

#include <span>

#include "ops/attention/attention.h"

namespace brisk::cuda {

enum class AttentionVariant : uint8_t {
  plain,            // f32, no tensor cores: any type and width
  narrow,           // the same, a thread for each row: heads 2, 4 or 8 wide
  by_tile,          // a block has a tile of 64 queries, or keys: seven products backward
  by_wide_tile,     // of 128; heads at most 64 wide
  by_sequence,      // backward: a block has a sequence of a head, five products
  hopper,           // as by_tile, with Hopper's matrix instructions; heads at most 64 wide
  hopper_pair,      // forward: 128 queries a block
  cudnn,            // NVIDIA's, with the same bits every time
  cudnn_unordered,  // backward: with other bits every time, for timings alone
};
std::span<const AttentionVariant> every_attention_variant();
const char* name_of(AttentionVariant variant);

// False: nothing was done, since the variant does not support these operands, or does not exist in that direction.
bool attention_forward(const AttentionForward& op, AttentionVariant variant);
bool attention_backward(const AttentionBackward& op, AttentionVariant variant);

// AttentionVariant::plain, which is what computes a bias.
void attention_forward_plain(const AttentionForward& op);
void attention_backward_plain(const AttentionBackward& op);

// The variant for operands too small to be worth timing: one that always works.
AttentionVariant usual_attention_forward(const AttentionForward& op);
AttentionVariant usual_attention_backward(const AttentionBackward& op);

}  // namespace brisk::cuda
