// The ways attention's backward can go on a card. Programs take the fastest; tests and timings name one.
//
//   if (!cuda::attention_backward(op, AttentionWay::by_sequence)) ...      // that way does not fit these heads
#pragma once

#include "ops/attention.h"

namespace brisk::cuda {

enum class AttentionWay : uint8_t {
  by_sequence,  // a block has a sequence of a head: five products
  by_tile,      // a block has a tile of queries or keys: seven products, more blocks
  plain,        // f32, no tensor cores: any type and width
};

// False: nothing was done, since the way does not fit.
bool attention_backward(const AttentionBackward& op, AttentionWay way);

}  // namespace brisk::cuda
