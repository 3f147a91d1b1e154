// A device owns memory. Outside ops/ its memory is opaque: bytes go in and out through copy_in and copy_out alone.
//
//   Device& device = cpu_device();
//   Buffer weights(device, bytes);                 // huge pages where the system has them; zeroed
//   device.copy_in(weights.data(), host, bytes);
//
// `guarded_device()` is a test device: its memory cannot be read or written except while an op runs (DeviceAccess) or
// by a copy. What runs on it needs no change for a GPU. `cuda_device()` is an NVIDIA GPU (tensor/device_cuda.cpp):
// what runs there is queued, and copy_out waits for what was queued before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brisk {

// Work of a device, recorded once, to be run as often as wanted with little cost.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void run() = 0;                        // queues it
  virtual int64_t kernels() const { return 0; }  // kernels, copies and fills in it
};

// The device's own time: each stamp is queued behind what came before it.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual void stamp() = 0;
  virtual std::vector<double> seconds() = 0;  // between neighbouring stamps; waits for the last
};

// A place in what is queued.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  // Behind everything queued so far. Set while a graph is recorded, it is set whenever that graph runs.
  virtual void set() = 0;
  virtual bool reached() = 0;  // everything before it is done
  virtual void wait() = 0;     // until it is
};

// Copies data from staging memory to a fixed address while the device is still busy with what was queued before: the
// transfer over the bus runs concurrently, and only a copy within the device waits for its turn.
class DeviceInlet {
 public:
  virtual ~DeviceInlet() = default;
  // What is queued after it finds the data at `to`. `staging` must stay as it is until a mark behind it is reached.
  virtual void send(void* to, const void* staging, int64_t bytes) = 0;
};

// A second queue of a device, whose work goes on beside that of the first: for what moves between GPUs. Where the device does
// everything at once, so does this.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  virtual void* handle() { return nullptr; }  // of a GPU, its cudaStream_t
  virtual void wait_for(DeviceMark& /*mark*/) {
  }                                   // what is put here from now on waits for that place of the first queue
  virtual void hold_back_device() {}  // what is queued on the device from now on waits for what was put here
  virtual void run(const std::function<void()>& work) { work(); }  // what it queues goes here
  virtual std::unique_ptr<DeviceClock> clock() {
    return nullptr;
  }  // of this queue; null where the host's clock will do
};

struct CudaGpu {
  std::string name;
  int64_t memory_bytes = 0;
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
  std::string bus_id;        // its place: "0000:1b:00.0", however the process numbers it
};

// What a process takes of a GPU's memory.
struct GpuMemory {
  int64_t allocated = 0;       // now, by brisk itself
  int64_t peak_allocated = 0;  // the most that was (forget_peak())
  int64_t context = 0;         // by CUDA: the context, kernels, libraries, graphs
  int64_t peak() const { return peak_allocated + context; }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;
  virtual void* allocate(int64_t bytes) = 0;  // zeroed, aligned to 4096; throws UserError when there is no memory
  virtual void release(void* data, int64_t bytes) = 0;
  virtual void copy_in(void* device, const void* host, int64_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, int64_t bytes) = 0;
  // Host memory that the device copies from while the host goes on: what is copied in from there must stay as it is
  // until wait() or a copy_out.
  virtual void* allocate_staging(int64_t bytes);
  virtual void release_staging(void* data);
  virtual void wait() {}  // until everything queued is done
  // Records what `work` queues, and runs none of it. Null where the device has no graphs.
  virtual std::unique_ptr<DeviceGraph> record(const std::function<void()>& /*work*/) { return nullptr; }
  virtual bool is_recording() { return false; }
  virtual std::unique_ptr<DeviceClock> clock() { return nullptr; }  // null where the host's clock will do
  virtual bool is_cuda() const { return false; }
  virtual int compute_capability() const { return 0; }  // of a GPU: 90 is 9.0
  virtual int64_t used_bytes() const;                   // likewise
  virtual int64_t free_bytes() const;  // of its memory; of the CPU's base/machine/machine.h knows better: 0
  // Bracket the run of an op; only ops/ and the tape that runs them may.
  virtual void open() {}
  virtual void close() {}
  // Of a GPU, else none:
  virtual const CudaGpu* gpu() const { return nullptr; }
  virtual GpuMemory memory() const { return {}; }
  virtual void forget_peak() {}  // the peak is what is allocated now
  virtual std::unique_ptr<DeviceMark> mark() { return nullptr; }
  virtual std::unique_ptr<DeviceInlet> inlet(int64_t /*most_bytes*/) { return nullptr; }
  virtual std::unique_ptr<DeviceQueue> queue() { return std::make_unique<DeviceQueue>(); }
};

Device& cpu_device();
Device& guarded_device();

// GPU `number` of those the process may see, for the current runtime: one GPU for the whole process, and one runtime at a
// time. Throws UserError where it is another's, or where there is no such GPU, no driver, or no CUDA in this brisk.
Device& cuda_device(int number = 0);
bool built_with_cuda();

// The explanation that an out-of-memory error of the GPU adds to the sizes, in this thread and while the object lives:
// what takes the memory, and which setting saves how much. It is only computed when the error happens.
class GpuMemoryExplanation {
 public:
  explicit GpuMemoryExplanation(std::function<std::string()> explanation);
  ~GpuMemoryExplanation();
  GpuMemoryExplanation(const GpuMemoryExplanation&) = delete;
  GpuMemoryExplanation& operator=(const GpuMemoryExplanation&) = delete;
  static std::string text();  // behind a newline; empty where there is none

 private:
  std::function<std::string()> explanation_;
  const GpuMemoryExplanation* before_;
};

// What the driver says of the GPUs. None without a driver, a GPU, or CUDA in this brisk: then `why` says which.
std::vector<CudaGpu> cuda_gpus(std::string* why = nullptr);

class DeviceAccess {
 public:
  explicit DeviceAccess(Device& device) : device_(device) { device_.open(); }
  ~DeviceAccess() { device_.close(); }
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  Device& device_;
};

// Device memory that is given back at the end of its life.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device& device() const { return *device_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace brisk
