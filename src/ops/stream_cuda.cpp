#include "base/error.h"
#include "base/rounding.h"
#include "ops/beside_cuda.h"
#include "ops/cuda_stream.h"

namespace brisk::cuda {

namespace {

struct Branch {
  cudaStream_t stream = nullptr;
  cudaEvent_t begun = nullptr, ended = nullptr;

  Branch() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "making an event");
    check(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming), "making an event");
  }
};

Branch& branch() {
  static Branch only;
  return only;
}

bool working_beside = false;

}  // namespace

bool is_beside() { return working_beside; }

bool is_captured() {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(), &state), "asking for the stream's state");
  return state != cudaStreamCaptureStatusNone;
}

namespace {

class GrowingMemory {
 public:
  void* at_least(int64_t bytes) {
    const bool captures = is_captured();
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

void BesideWork::queue(const std::function<void()>& work) {
  BRISK_CHECK(!apart_ && !working_beside, "work beside work");
  if (!is_captured()) return work();
  Branch& side = branch();
  check(cudaEventRecord(side.begun, stream()), "beginning work beside the stream");
  check(cudaStreamWaitEvent(side.stream, side.begun, 0), "beginning work beside the stream");
  apart_ = true;
  working_beside = true;
  const OtherStream other(side.stream);
  try {
    work();
  } catch (...) {
    working_beside = false;
    throw;
  }
  working_beside = false;
  check(cudaEventRecord(side.ended, side.stream), "ending work beside the stream");
}

void BesideWork::join() {
  if (!apart_) return;
  apart_ = false;
  check(cudaStreamWaitEvent(stream(), branch().ended, 0), "waiting for work beside the stream");
}

void* workspace(int64_t bytes) {
  static GrowingMemory memory;
  BRISK_CHECK(!working_beside, "work beside the stream wants {} bytes of its workspace", bytes);
  return memory.at_least(bytes);
}

void* operand_workspace(int64_t bytes) {
  static GrowingMemory memory;
  BRISK_CHECK(!working_beside, "work beside the stream wants {} bytes of its operands' workspace", bytes);
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
