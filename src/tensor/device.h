// A device owns memory. Outside ops/ its memory is opaque: bytes go in and out through copy_in and copy_out alone.
//
//   Device& device = cpu_device();
//   Buffer weights(device, bytes);                 // huge pages where the system has them; zeroed
//   device.copy_in(weights.data(), host, bytes);
//
// `guarded_device()` is a test device: its memory cannot be read or written except while an op runs (DeviceAccess) or
// by a copy. What runs on it needs no change for a GPU. `cuda_device()` is a graphics card (tensor/device_cuda.cpp):
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
  virtual void run() = 0;  // queues it
};

// The device's own time: each stamp is queued behind what came before it.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual void stamp() = 0;
  virtual std::vector<double> seconds() = 0;  // between neighbouring stamps; waits for the last
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
  virtual std::unique_ptr<DeviceClock> clock() { return nullptr; }  // null where the host's clock will do
  virtual bool is_cuda() const { return false; }
  virtual int compute_capability() const { return 0; }  // of a card: 90 is 9.0
  virtual int64_t used_bytes() const;                   // likewise
  virtual int64_t free_bytes() const;                   // of its memory; of the CPU's base/machine.h knows better: 0
  // Bracket the run of an op; only ops/ and the tape that runs them may.
  virtual void open() {}
  virtual void close() {}
};

Device& cpu_device();
Device& guarded_device();

// Card `number` of those the process may see; one card for the whole process. Throws UserError where there is no such
// card, no driver, or no CUDA in this brisk.
Device& cuda_device(int number = 0);
bool built_with_cuda();

struct CudaCard {
  std::string name;
  int64_t memory_bytes = 0;
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
};
// What the driver says of the cards. None without a driver, a card, or CUDA in this brisk: then `why` says which.
std::vector<CudaCard> cuda_cards(std::string* why = nullptr);

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
