// The ways attention can go on a card. Programs take what timings chose (docs/log.md); tests and timings name one.
//
//   if (!cuda::attention_backward(op, AttentionWay::by_sequence)) ...      // that way does not fit these heads
#pragma once

#include "ops/attention.h"

namespace brisk::cuda {

enum class AttentionWay : uint8_t {
  by_sequence,  // a block has a sequence of a head: five products
  by_tile,      // a block has a tile of queries or keys: seven products, more blocks
  hopper,       // as by tile, with Hopper's matrix instructions, 64 rows a block
  hopper_pair,  // 128 rows a block
  plain,        // f32, no tensor cores: any type and width
};

// False: nothing was done, since the way does not fit.
bool attention_backward(const AttentionBackward& op, AttentionWay way);

// A block of 4 or 8 warps that have 16 or 32 queries each, or with `hopper` its matrix instructions and 16 queries
// each. False: nothing was done, since the heads are too wide, or not for tensor cores.
bool attention_forward(const AttentionForward& op, int warps, int rows_of_warp, bool hopper);

}  // namespace brisk::cuda
