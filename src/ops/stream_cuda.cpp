#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda_stream.h"

namespace brisk::cuda {

void* workspace(int64_t bytes) {
  static void* memory = nullptr;
  static int64_t size = 0;
  if (bytes > size) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream(), &capture), "asking for the stream's state");
    BRISK_CHECK(capture == cudaStreamCaptureStatusNone, "a workspace of {} bytes while a graph is captured", bytes);
    if (memory != nullptr) check(cudaFree(memory), "releasing the workspace");  // waits for those that use it
    memory = nullptr;
    const int64_t wanted = round_up(bytes, int64_t{2} << 20);
    check(cudaMalloc(&memory, static_cast<size_t>(wanted)), "allocating the workspace of an op");
    size = wanted;
  }
  return memory;
}

int multiprocessors() {
  static const int count = [] {
    int card = 0, value = 0;
    check(cudaGetDevice(&card), "asking for the current card");
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, card), "asking for the multiprocessors");
    return value;
  }();
  return count;
}

}  // namespace brisk::cuda
