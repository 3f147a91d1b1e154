#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda_stream.h"

namespace brisk::cuda {

namespace {

class GrowingMemory {
 public:
  void* at_least(int64_t bytes) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream(), &capture), "asking for the stream's state");
    const bool captures = capture != cudaStreamCaptureStatusNone;
    if (bytes > size_) {
      BRISK_CHECK(!captures, "a workspace of {} bytes while a graph is recorded with {}", bytes, size_);
      if (memory_ != nullptr && !in_a_graph_)
        check(cudaFree(memory_), "releasing the workspace");  // waits for its users
      memory_ = nullptr;
      in_a_graph_ = false;
      const int64_t wanted = round_up(bytes, int64_t{2} << 20);
      check(cudaMalloc(&memory_, static_cast<size_t>(wanted)), "allocating the workspace of an op");
      size_ = wanted;
    }
    in_a_graph_ = in_a_graph_ || captures;
    return memory_;
  }

 private:
  void* memory_ = nullptr;
  int64_t size_ = 0;
  bool in_a_graph_ = false;  // a graph goes on using the memory that it was recorded with
};

}  // namespace

void* workspace(int64_t bytes) {
  static GrowingMemory memory;
  return memory.at_least(bytes);
}

void* operand_workspace(int64_t bytes) {
  static GrowingMemory memory;
  return memory.at_least(bytes);
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
