#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/cuda/side_stream_cuda.h"
#include "ops/tape/gpu_workspace.h"
#include "tensor/gpu_memory.h"

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

bool on_side_stream = false;

}  // namespace

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
      if (memory_ != nullptr && !in_a_graph_) release(memory_, size_);  // waits for its users
      size_ = 0;
      in_a_graph_ = false;
      const int64_t wanted = round_up(bytes, int64_t{2} << 20);
      memory_ = allocate_or_null(wanted);
      if (memory_ == nullptr) no_memory(wanted, "allocating the workspace of an op");
      size_ = wanted;
    }
    in_a_graph_ = in_a_graph_ || captures;
    return memory_;
  }
  int64_t size() const { return size_; }
  void give_back() {
    if (memory_ != nullptr) release(memory_, size_);  // waits for its users
    *this = {};
  }

 private:
  void* memory_ = nullptr;
  int64_t size_ = 0;
  bool in_a_graph_ = false;  // a graph goes on using the memory that it was recorded with
};

struct Workspaces {
  GrowingMemory shared, operands, products;
};

Workspaces& workspaces() {
  static Workspaces all;
  return all;
}

}  // namespace

void SideStream::queue(const std::function<void()>& work) {
  BRISK_CHECK(!apart_ && !on_side_stream, "nested work on the side stream");
  if (!is_captured()) return work();
  Branch& side = branch();
  check(cudaEventRecord(side.begun, stream()), "beginning work on the side stream");
  check(cudaStreamWaitEvent(side.stream, side.begun, 0), "beginning work on the side stream");
  apart_ = true;
  on_side_stream = true;
  const OtherStream other(side.stream);
  try {
    work();
  } catch (...) {
    on_side_stream = false;
    throw;
  }
  on_side_stream = false;
  check(cudaEventRecord(side.ended, side.stream), "ending work on the side stream");
}

void SideStream::join() {
  if (!apart_) return;
  apart_ = false;
  check(cudaStreamWaitEvent(stream(), branch().ended, 0), "waiting for the side stream");
}

void reserve_workspace(int64_t bytes) { workspace(bytes); }
void reserve_operand_workspace(int64_t bytes) { operand_workspace(bytes); }
int64_t workspace_size() { return workspaces().shared.size(); }

void release_workspaces() {
  for (GrowingMemory* memory : {&workspaces().shared, &workspaces().operands, &workspaces().products}) {
    memory->give_back();
  }
}

void* workspace(int64_t bytes) {
  BRISK_CHECK(!on_side_stream, "work on the side stream asks for {} bytes of the main stream's workspace", bytes);
  return workspaces().shared.at_least(bytes);
}

void* operand_workspace(int64_t bytes) {
  BRISK_CHECK(!on_side_stream, "work on the side stream asks for {} bytes of the main stream's operand workspace",
              bytes);
  return workspaces().operands.at_least(bytes);
}

// Of their own: ops keep what they multiply in the shared one.
void* gemm_workspace() {
  char* const both = static_cast<char*>(workspaces().products.at_least(kGemmWorkspaceBytes));
  return both + (on_side_stream ? kGemmWorkspaceBytes / 2 : 0);
}

int multiprocessors() {
  static const int count = [] {
    int gpu = 0, value = 0;
    check(cudaGetDevice(&gpu), "asking for the current GPU");
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, gpu), "asking for the multiprocessors");
    return value;
  }();
  return count;
}

}  // namespace brisk::cuda
