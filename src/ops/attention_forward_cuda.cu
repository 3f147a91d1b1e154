#include "ops/attention_cuda.cuh"

namespace brisk::cuda {

void attention_forward(const AttentionForward& op) { attention_forward_plain(op); }

}  // namespace brisk::cuda
