// Where brisk is built without cuDNN's header.
#include "ops/attention/cuda/attention_cudnn_cuda.h"

namespace brisk::cuda {

int64_t attention_library_version() { return 0; }

const std::string& attention_refusal() {
  static const std::string said = "this brisk was built without cuDNN";
  return said;
}

const std::string& attention_engine() {
  static const std::string none;
  return none;
}

bool attention_forward_cudnn(const AttentionForward& /*op*/) { return false; }
bool attention_backward_cudnn(const AttentionBackward& /*op*/, bool /*deterministic*/) { return false; }

}  // namespace brisk::cuda
