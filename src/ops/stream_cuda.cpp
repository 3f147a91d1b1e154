#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda_stream.h"

namespace brisk::cuda {

void* workspace(int64_t bytes) {
  static void* memory = nullptr;
  static int64_t size = 0;
  static bool in_a_graph = false;  // a graph goes on using the memory that it was recorded with
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(), &capture), "asking for the stream's state");
  const bool captures = capture != cudaStreamCaptureStatusNone;
  if (bytes > size) {
    BRISK_CHECK(!captures, "a workspace of {} bytes while a graph is recorded with {}", bytes, size);
    if (memory != nullptr && !in_a_graph) check(cudaFree(memory), "releasing the workspace");  // waits for its users
    memory = nullptr;
    in_a_graph = false;
    const int64_t wanted = round_up(bytes, int64_t{2} << 20);
    check(cudaMalloc(&memory, static_cast<size_t>(wanted)), "allocating the workspace of an op");
    size = wanted;
  }
  in_a_graph = in_a_graph || captures;
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
