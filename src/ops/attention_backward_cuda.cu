#include "ops/attention_cuda.cuh"

namespace brisk::cuda {

void attention_backward(const AttentionBackward& op) { attention_backward_plain(op); }

}  // namespace brisk::cuda
