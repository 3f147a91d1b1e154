#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/files/files.h"
#include "base/gpu/gpu_sensor.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "tensor/cuda_runtime.h"
#include "tensor/device.h"
#include "tensor/gpu_memory.h"

namespace brisk {

namespace {

constexpr int kOldestMajor = 8;  // kernels are built for compute capability 8.0 and newer

int gpu_in_use = -1;
CudaGpu gpu_facts;  // of the one in use

// Of this process, in bytes.
std::atomic<int64_t> allocated = 0, peak_allocated = 0;
int64_t context_bytes = 0;      // the context itself
int64_t used_with_context = 0;  // of the whole GPU, before brisk allocated anything

int64_t used_on_gpu() {
  size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return static_cast<int64_t>(total - free);
}

// The context takes hundreds of megabytes. How many, the management library knows from before and after; without it,
// everything in use on the GPU is taken for ours.
void start_context() {
  const std::unique_ptr<GpuSensor> sensor = open_gpu_sensor(gpu_facts.bus_id);
  const int64_t before = sensor ? sensor->read().memory_used_bytes : -1;
  cuda::check(cudaSetDevice(gpu_in_use), "choosing the GPU");
  cuda::check(cudaFree(nullptr), "starting the GPU");
  used_with_context = used_on_gpu();
  const int64_t after = before >= 0 ? sensor->read().memory_used_bytes : -1;
  context_bytes = after >= 0 ? std::max<int64_t>(0, after - before) : used_with_context;
}
thread_local cudaStream_t other_stream = nullptr;

// Threads each have a current GPU of their own; a writer of checkpoints copies from its.
void use_gpu() {
  thread_local bool chosen = false;
  if (chosen || gpu_in_use < 0) return;
  cuda::check(cudaSetDevice(gpu_in_use), "choosing the GPU");
  chosen = true;
}

// The stream, the workspaces and what was chosen for products are the process's, and one runtime's at a time.
std::atomic<const Runtime*> gpu_user = nullptr;

void take_gpu_for(Runtime& runtime) {
  const Runtime* user = nullptr;
  if (!gpu_user.compare_exchange_strong(user, &runtime)) {
    if (user == &runtime) return;
    user_error(
        "device: another Runtime of this process computes on the GPU; wait until that one is destroyed, or use "
        "\"cpu\"");
  }
  runtime.keep(std::shared_ptr<void>(nullptr, [](void*) { gpu_user = nullptr; }));
}

std::string why_no_gpu(cudaError_t status) {
  // Without the driver's files there is no GPU to miss; with them, what it says is worth reading.
  if (!file_exists("/proc/driver/nvidia/version")) return "no NVIDIA GPU";
  if (status == cudaErrorNoDevice) return "no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES?)";
  if (status == cudaErrorInsufficientDriver) return "there is no NVIDIA driver, or one too old for this brisk's CUDA";
  return fmt::format("the NVIDIA driver says: {}", cudaGetErrorString(status));
}

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(cudaGraph_t recorded) : kernels_(kernels_in(recorded)) {
    const cudaError_t status = cudaGraphInstantiate(&ready_, recorded, 0);
    cudaGraphDestroy(recorded);
    cuda::check(status, "making a graph ready");
    cuda::check(cudaGraphUpload(ready_, cuda::stream()), "sending a graph to the GPU");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(ready_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void run() override { cuda::check(cudaGraphLaunch(ready_, cuda::stream()), "running a graph"); }
  int64_t kernels() const override { return kernels_; }

 private:
  static int64_t kernels_in(cudaGraph_t graph) {
    size_t count = 0;
    if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return 0;
    std::vector<cudaGraphNode_t> nodes(count);
    if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return 0;
    return std::count_if(nodes.begin(), nodes.end(), [](cudaGraphNode_t node) {
      cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
      if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return false;
      return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
    });
  }

  int64_t kernels_ = 0;
  cudaGraphExec_t ready_ = nullptr;
};

class CudaClock final : public DeviceClock {
 public:
  explicit CudaClock(cudaStream_t of = nullptr) : of_(of) {}  // null: of the stream that is current at each stamp
  ~CudaClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  CudaClock(const CudaClock&) = delete;
  CudaClock& operator=(const CudaClock&) = delete;
  void stamp() override {
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreate(&event), "making an event");
    events_.push_back(event);
    cuda::check(cudaEventRecord(event, of_ != nullptr ? of_ : cuda::stream()), "stamping the GPU's time");
  }
  std::vector<double> seconds() override {
    std::vector<double> all;
    if (!events_.empty()) cuda::check(cudaEventSynchronize(events_.back()), "waiting for the GPU");
    for (size_t i = 1; i < events_.size(); ++i) {
      float milliseconds = 0;
      cuda::check(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]), "reading the GPU's time");
      all.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    return all;
  }

 private:
  cudaStream_t of_;
  std::vector<cudaEvent_t> events_;
};

class CudaMark final : public DeviceMark {
 public:
  CudaMark() { cuda::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  ~CudaMark() override { cudaEventDestroy(event_); }
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;
  void set() override { set_on(cuda::stream()); }
  // In a graph, as a node of it that other streams can wait for: an event of the usual kind would only order what is
  // recorded.
  void set_on(cudaStream_t stream) {
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(stream, &state), "asking for the stream's state");
    const unsigned flags = state == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    cuda::check(cudaEventRecordWithFlags(event_, stream, flags), "marking a place in the queue");
  }
  bool reached() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    cuda::check(status, "asking how far the GPU is");
    return true;
  }
  void wait() override { cuda::check(cudaEventSynchronize(event_), "waiting for the GPU"); }
  void hold_back(cudaStream_t stream) { cuda::check(cudaStreamWaitEvent(stream, event_, 0), "ordering two queues"); }

 private:
  cudaEvent_t event_ = nullptr;
};

// A second stream carries data over the bus into one of two places in turn.
class CudaInlet final : public DeviceInlet {
 public:
  explicit CudaInlet(int64_t most_bytes) : bytes_(std::max<int64_t>(1, most_bytes)) {
    cuda::check(cudaStreamCreateWithFlags(&bus_, cudaStreamNonBlocking), "making a stream");
    for (Landing& landing : landings_) {
      landing.memory = cuda::allocate_or_null(bytes_);
      if (landing.memory == nullptr) cuda::no_memory(bytes_, "making room for the next batch");
    }
  }
  ~CudaInlet() override {
    cudaStreamSynchronize(bus_);
    for (const Landing& landing : landings_) {
      if (landing.memory != nullptr) cuda::release(landing.memory, bytes_);
    }
    cudaStreamDestroy(bus_);
  }
  CudaInlet(const CudaInlet&) = delete;
  CudaInlet& operator=(const CudaInlet&) = delete;
  void send(void* to, const void* staging, int64_t bytes) override {
    BRISK_CHECK(bytes <= bytes_, "{} bytes through an inlet for {}", bytes, bytes_);
    Landing& landing = landings_[turn_ ^= 1];
    if (landing.used) landing.taken.hold_back(bus_);
    cuda::check(cudaMemcpyAsync(landing.memory, staging, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, bus_),
                "copying a batch to the GPU");
    landing.landed.set_on(bus_);
    landing.landed.hold_back(cuda::stream());
    cuda::check(
        cudaMemcpyAsync(to, landing.memory, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, cuda::stream()),
        "taking over a batch");
    landing.taken.set();
    landing.used = true;
  }

 private:
  struct Landing {
    void* memory = nullptr;
    CudaMark landed, taken;
    bool used = false;
  };
  int64_t bytes_;
  cudaStream_t bus_ = nullptr;
  Landing landings_[2];
  int turn_ = 0;
};

class CudaQueue final : public DeviceQueue {
 public:
  CudaQueue() {
    // What moves data between GPUs takes few multiprocessors, and as soon as some are free: others wait for it.
    int least = 0, greatest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "making a stream");
  }
  ~CudaQueue() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;
  void* handle() override { return stream_; }
  void wait_for(DeviceMark& mark) override { static_cast<CudaMark&>(mark).hold_back(stream_); }
  void hold_back_device() override {
    done_.set_on(stream_);
    done_.hold_back(cuda::stream());
  }
  void run(const std::function<void()>& work) override {
    const cuda::OtherStream here(stream_);
    work();
  }
  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<CudaClock>(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
  CudaMark done_;
};

class CudaDevice final : public Device {
 public:
  const char* name() const override { return "cuda"; }
  bool is_cuda() const override { return true; }
  int compute_capability() const override { return 10 * gpu_facts.major + gpu_facts.minor; }
  void* allocate(int64_t bytes) override {
    use_gpu();
    const int64_t size = rounded(bytes);
    void* data = cuda::allocate_or_null(size);
    if (data == nullptr) cuda::no_memory(size, "allocating memory");
    cuda::check(cudaMemsetAsync(data, 0, static_cast<size_t>(size), cuda::stream()), "clearing memory on the GPU");
    return data;
  }
  void release(void* data, int64_t bytes) override { cuda::release(data, rounded(bytes)); }  // waits for what is queued
  void copy_in(void* device, const void* host, int64_t bytes) override {
    use_gpu();
    // From memory that is not pinned this returns when `host` was read.
    cuda::check(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, cuda::stream()),
                "copying to the GPU");
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    use_gpu();
    cuda::check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, cuda::stream()),
                "copying from the GPU");
    wait();
  }
  int64_t free_bytes() const override {
    use_gpu();
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "asking for the GPU's free memory");
    return static_cast<int64_t>(free);
  }
  int64_t used_bytes() const override {
    use_gpu();
    return used_on_gpu();
  }
  const CudaGpu* gpu() const override { return &gpu_facts; }
  GpuMemory memory() const override {
    use_gpu();
    // Kernels and libraries are loaded when they are first needed: what the GPU's use has grown by and is not brisk's.
    const int64_t loaded = std::max<int64_t>(0, used_on_gpu() - used_with_context - allocated);
    return {allocated, peak_allocated, context_bytes + loaded};
  }
  void forget_peak() override { peak_allocated = allocated.load(); }
  std::unique_ptr<DeviceMark> mark() override { return std::make_unique<CudaMark>(); }
  std::unique_ptr<DeviceInlet> inlet(int64_t most_bytes) override {
    use_gpu();
    return std::make_unique<CudaInlet>(most_bytes);
  }
  std::unique_ptr<DeviceQueue> queue() override {
    use_gpu();
    return std::make_unique<CudaQueue>();
  }
  void* allocate_staging(int64_t bytes) override {
    use_gpu();
    void* data = nullptr;
    const cudaError_t status = cudaMallocHost(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      user_error(
          "no pinned memory on the host for {} MiB; free some of the host's memory, raise its limit for locked memory "
          "(ulimit -l), or lower training.micro_batch_tokens",
          divide_up(bytes, int64_t{1} << 20));
    }
    cuda::check(status, "allocating pinned memory");
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
  bool is_recording() override {
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(cuda::stream(), &state), "asking for the stream's state");
    return state != cudaStreamCaptureStatusNone;
  }
  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<CudaClock>(); }
  void wait() override { cuda::check(cudaStreamSynchronize(cuda::stream()), "waiting for the GPU"); }

 private:
  // Whole pages of the GPU: its allocator then aligns to them.
  static int64_t rounded(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 1), int64_t{2} << 20); }
};

}  // namespace

namespace cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  if (status == cudaErrorMemoryAllocation) no_memory(0, what);
  throw InternalError(fmt::format("{}: {}: {}", what, cudaGetErrorName(status), cudaGetErrorString(status)));
}

void* allocate_or_null(int64_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(status, "allocating memory on the GPU");
  const int64_t now = allocated += bytes;
  int64_t most = peak_allocated;
  while (now > most && !peak_allocated.compare_exchange_weak(most, now)) {
  }
  return data;
}

void release(void* data, int64_t bytes) {
  cudaFree(data);
  allocated -= bytes;
}

void no_memory(int64_t bytes, const char* what) {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  cudaGetLastError();
  user_error("{}: no memory on the GPU: {}{} of its {} MiB are free, {} are this brisk's{}", what,
             bytes > 0 ? fmt::format("{} MiB wanted, ", divide_up(bytes, int64_t{1} << 20)) : "", free >> 20,
             total >> 20, allocated.load() >> 20, GpuMemoryExplanation::text());
}

OtherStream::OtherStream(cudaStream_t other) { other_stream = other; }
OtherStream::~OtherStream() { other_stream = nullptr; }

cudaStream_t stream() {
  if (other_stream != nullptr) return other_stream;
  static const cudaStream_t only = [] {
    use_gpu();
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    return made;
  }();
  return only;
}

}  // namespace cuda

bool built_with_cuda() { return true; }

std::vector<CudaGpu> cuda_gpus(std::string* why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    if (why != nullptr) *why = why_no_gpu(status == cudaSuccess ? cudaErrorNoDevice : status);
    return {};
  }
  std::vector<CudaGpu> gpus;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    cuda::check(cudaGetDeviceProperties(&properties, i), "asking for the GPU's properties");
    gpus.push_back(
        {properties.name, static_cast<int64_t>(properties.totalGlobalMem), properties.multiProcessorCount,
         properties.major, properties.minor,
         fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)});
  }
  return gpus;
}

Device& cuda_device(int number) {
  static CudaDevice device;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  take_gpu_for(Runtime::current());
  if (gpu_in_use == number) return device;
  if (gpu_in_use >= 0) {
    user_error("device: \"cuda:{}\" was asked for, but this process computes on cuda:{}; use that, or another process",
               number, gpu_in_use);
  }
  std::string why;
  const std::vector<CudaGpu> gpus = cuda_gpus(&why);
  if (gpus.empty()) user_error("device: {}; use \"cpu\"", why);
  if (number < 0 || number >= static_cast<int>(gpus.size()))
    user_error("device: cuda:{} does not exist; the last one is cuda:{}", number, gpus.size() - 1);
  const CudaGpu& gpu = gpus[static_cast<size_t>(number)];
  if (gpu.major < kOldestMajor)
    user_error("device: {} has compute capability {}.{}; brisk needs 8.0 or newer (Ampere); use \"cpu\"", gpu.name,
               gpu.major, gpu.minor);
  gpu_in_use = number;
  gpu_facts = gpu;
  start_context();
  return device;
}

}  // namespace brisk
