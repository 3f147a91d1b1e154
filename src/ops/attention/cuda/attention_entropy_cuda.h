// Attention with the entropy of its weights on a GPU (attention_entropy_cuda.cu): up to 32 heads, a power of two of them, of
// width 2, 4 or 8, each with keys of its own.
#pragma once

#include "ops/attention/attention.h"

namespace brisk::cuda {

void attention_forward_with_entropy(const AttentionForward& op);
void attention_backward_with_entropy(const AttentionBackward& op);

}  // namespace brisk::cuda
