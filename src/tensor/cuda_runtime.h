// The GPU's stream: everything a process does on its GPU is queued on it, except for work that an op forks to a second
// stream and joins again (ops/cuda/side_stream_cuda.h).
//
//   cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda::stream()), "copying a batch");
#pragma once

#include <cuda_runtime_api.h>

namespace brisk::cuda {

cudaStream_t stream();
// While it exists, stream() returns `other` in this thread.
class OtherStream {
 public:
  explicit OtherStream(cudaStream_t other);
  ~OtherStream();
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;
};
// Throws where `status` is an error: UserError when there is no memory, an internal error otherwise.
void check(cudaError_t status, const char* what);

}  // namespace brisk::cuda
