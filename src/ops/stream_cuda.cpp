#include "base/error.h"
#include "base/rounding.h"
#include "ops/card_workspace.h"
#include "ops/cuda_stream.h"

namespace brisk::cuda {

namespace {
void* memory = nullptr;
int64_t size = 0;
bool in_a_graph = false;  // a graph goes on using the memory that it was recorded with
}  // namespace

void reserve_workspace(int64_t bytes) { workspace(bytes); }
int64_t workspace_size() { return size; }

void* workspace(int64_t bytes) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(), &capture), "asking for the stream's state");
  const bool captures = capture != cudaStreamCaptureStatusNone;
  if (bytes > size) {
    BRISK_CHECK(!captures, "a workspace of {} bytes while a graph is recorded with {}", bytes, size);
    if (memory != nullptr && !in_a_graph) release(memory, size);  // waits for its users
    memory = nullptr;
    in_a_graph = false;
    const int64_t wanted = round_up(bytes, int64_t{2} << 20);
    size = 0;
    memory = allocate_or_null(wanted);
    if (memory == nullptr) no_memory(wanted, "allocating the workspace of an op");
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
