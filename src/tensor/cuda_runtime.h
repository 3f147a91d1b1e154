// The GPU's stream: everything a process does on its GPU is queued on one, but for what ops run beside it within
// (ops/cuda/side_stream_cuda.h).
//
//   cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda::stream()), "copying a batch");
#pragma once

#include <cuda_runtime_api.h>

namespace brisk::cuda {

cudaStream_t stream();
// Until it goes, stream() is another, in this thread.
class OtherStream {
 public:
  explicit OtherStream(cudaStream_t other);
  ~OtherStream();
  OtherStream(const OtherStream&) = delete;
  OtherStream& operator=(const OtherStream&) = delete;
};
// Throws where `status` is an error: UserError when there is no memory, a fault of ours otherwise.
void check(cudaError_t status, const char* what);

}  // namespace brisk::cuda
