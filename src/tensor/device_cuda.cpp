#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"
#include "tensor/cuda_runtime.h"
#include "tensor/device.h"

namespace brisk {

namespace {

constexpr int kOldestMajor = 8;  // kernels are built for compute capability 8.0 and newer

int card_in_use = -1;
thread_local cudaStream_t other_stream = nullptr;

// Threads each have a current card of their own; a writer of checkpoints copies from its.
void use_card() {
  thread_local bool chosen = false;
  if (chosen || card_in_use < 0) return;
  cuda::check(cudaSetDevice(card_in_use), "choosing the card");
  chosen = true;
}

std::string why_no_card(cudaError_t status) {
  if (status == cudaErrorNoDevice) return "no NVIDIA card is visible (CUDA_VISIBLE_DEVICES?)";
  if (status == cudaErrorInsufficientDriver) return "there is no NVIDIA driver, or one too old for this brisk's CUDA";
  return fmt::format("the NVIDIA driver says: {}", cudaGetErrorString(status));
}

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(cudaGraph_t recorded) {
    const cudaError_t status = cudaGraphInstantiate(&ready_, recorded, 0);
    cudaGraphDestroy(recorded);
    cuda::check(status, "making a graph ready");
    cuda::check(cudaGraphUpload(ready_, cuda::stream()), "sending a graph to the card");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(ready_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void run() override { cuda::check(cudaGraphLaunch(ready_, cuda::stream()), "running a graph"); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

class CudaClock final : public DeviceClock {
 public:
  CudaClock() = default;
  ~CudaClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  CudaClock(const CudaClock&) = delete;
  CudaClock& operator=(const CudaClock&) = delete;
  void stamp() override {
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreate(&event), "making an event");
    events_.push_back(event);
    cuda::check(cudaEventRecord(event, cuda::stream()), "stamping the card's time");
  }
  std::vector<double> seconds() override {
    std::vector<double> all;
    if (!events_.empty()) cuda::check(cudaEventSynchronize(events_.back()), "waiting for the card");
    for (size_t i = 1; i < events_.size(); ++i) {
      float milliseconds = 0;
      cuda::check(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]), "reading the card's time");
      all.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    return all;
  }

 private:
  std::vector<cudaEvent_t> events_;
};

class CudaDevice final : public Device {
 public:
  const char* name() const override { return "cuda"; }
  bool is_cuda() const override { return true; }
  int compute_capability() const override {
    const CudaCard card = cuda_cards().at(static_cast<size_t>(card_in_use));
    return 10 * card.major + card.minor;
  }
  void* allocate(int64_t bytes) override {
    use_card();
    void* data = nullptr;
    const int64_t size = rounded(bytes);
    const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(size));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      size_t free_bytes = 0, total_bytes = 0;
      cudaMemGetInfo(&free_bytes, &total_bytes);
      user_error(
          "no memory on the card: {} MiB wanted, {} of its {} MiB are free; use a smaller model, training.batch_size "
          "or "
          "training.micro_batch_tokens",
          size >> 20, free_bytes >> 20, total_bytes >> 20);
    }
    cuda::check(status, "allocating memory on the card");
    cuda::check(cudaMemsetAsync(data, 0, static_cast<size_t>(size), cuda::stream()), "clearing memory on the card");
    return data;
  }
  void release(void* data, int64_t) override { cudaFree(data); }  // waits for what is queued
  void copy_in(void* device, const void* host, int64_t bytes) override {
    use_card();
    // From memory that is not pinned this returns when `host` was read.
    cuda::check(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, cuda::stream()),
                "copying to the card");
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    use_card();
    cuda::check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, cuda::stream()),
                "copying from the card");
    wait();
  }
  int64_t free_bytes() const override {
    use_card();
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "asking for the card's free memory");
    return static_cast<int64_t>(free);
  }
  int64_t used_bytes() const override {
    use_card();
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "asking for the card's memory");
    return static_cast<int64_t>(total - free);
  }
  void* allocate_staging(int64_t bytes) override {
    use_card();
    void* data = nullptr;
    cuda::check(cudaMallocHost(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1))), "allocating pinned memory");
    return data;
  }
  void release_staging(void* data) override { cudaFreeHost(data); }
  std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) override {
    cuda::check(cudaStreamBeginCapture(cuda::stream(), cudaStreamCaptureModeThreadLocal), "recording a graph");
    cudaGraph_t recorded = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(cuda::stream(), &recorded);
      if (recorded != nullptr) cudaGraphDestroy(recorded);
      cudaGetLastError();
      throw;
    }
    cuda::check(cudaStreamEndCapture(cuda::stream(), &recorded), "recording a graph");
    return std::make_unique<CudaGraph>(recorded);
  }
  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<CudaClock>(); }
  void wait() override { cuda::check(cudaStreamSynchronize(cuda::stream()), "waiting for the card"); }

 private:
  // Whole pages of the card: its allocator then aligns to them.
  static int64_t rounded(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 1), int64_t{2} << 20); }
};

}  // namespace

namespace cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  if (status == cudaErrorMemoryAllocation)
    user_error("{}: no memory on the card; use a smaller model, training.batch_size or training.micro_batch_tokens",
               what);
  throw InternalError(fmt::format("{}: {}: {}", what, cudaGetErrorName(status), cudaGetErrorString(status)));
}

OtherStream::OtherStream(cudaStream_t other) { other_stream = other; }
OtherStream::~OtherStream() { other_stream = nullptr; }

cudaStream_t stream() {
  if (other_stream != nullptr) return other_stream;
  static const cudaStream_t only = [] {
    use_card();
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    return made;
  }();
  return only;
}

}  // namespace cuda

bool built_with_cuda() { return true; }

std::vector<CudaCard> cuda_cards(std::string* why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    if (why != nullptr) *why = why_no_card(status == cudaSuccess ? cudaErrorNoDevice : status);
    return {};
  }
  std::vector<CudaCard> cards;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    cuda::check(cudaGetDeviceProperties(&properties, i), "asking for the card's properties");
    cards.push_back({properties.name, static_cast<int64_t>(properties.totalGlobalMem), properties.multiProcessorCount,
                     properties.major, properties.minor});
  }
  return cards;
}

Device& cuda_device(int number) {
  static CudaDevice device;
  if (card_in_use == number) return device;
  BRISK_CHECK(card_in_use < 0, "card {} is in use, card {} was asked for", card_in_use, number);
  std::string why;
  const std::vector<CudaCard> cards = cuda_cards(&why);
  if (cards.empty()) user_error("device: {}; use \"cpu\"", why);
  if (number < 0 || number >= static_cast<int>(cards.size()))
    user_error("device: \"cuda:{}\" was asked for, but the last card there is is cuda:{}", number, cards.size() - 1);
  const CudaCard& card = cards[static_cast<size_t>(number)];
  if (card.major < kOldestMajor)
    user_error("device: {} has compute capability {}.{}; brisk needs 8.0 or newer (Ampere); use \"cpu\"", card.name,
               card.major, card.minor);
  card_in_use = number;
  return device;
}

}  // namespace brisk
