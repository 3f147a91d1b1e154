#include "tensor/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

void* map_memory(int64_t bytes, int protection) {
  void* data =
      mmap(nullptr, static_cast<size_t>(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    user_error(
        "no memory: the system refused {} MiB; use a smaller model, training.batch_size or training.micro_batch_tokens",
        bytes >> 20);
  }
  // Huge pages: an arena of hundreds of megabytes would otherwise miss the TLB on every panel of a product.
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return data;
}

int64_t rounded(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 1), kHugePage); }

class CpuDevice final : public Device {
 public:
  const char* name() const override { return "cpu"; }
  void* allocate(int64_t bytes) override { return map_memory(rounded(bytes), PROT_READ | PROT_WRITE); }
  void release(void* data, int64_t bytes) override { munmap(data, static_cast<size_t>(rounded(bytes))); }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    std::memcpy(device, host, static_cast<size_t>(bytes));
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    std::memcpy(host, device, static_cast<size_t>(bytes));
  }
};

// CPU memory behind a lock: every mapping is PROT_NONE unless an op runs or a copy is made.
class GuardedDevice final : public Device {
 public:
  const char* name() const override { return "guarded"; }
  void* allocate(int64_t bytes) override {
    void* data = map_memory(rounded(bytes), depth_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    mappings_[data] = rounded(bytes);
    return data;
  }
  void release(void* data, int64_t bytes) override {
    mappings_.erase(data);
    munmap(data, static_cast<size_t>(rounded(bytes)));
  }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    DeviceAccess access(*this);
    std::memcpy(device, host, static_cast<size_t>(bytes));
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    DeviceAccess access(*this);
    std::memcpy(host, device, static_cast<size_t>(bytes));
  }
  void open() override {
    if (depth_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() override {
    if (--depth_ == 0) protect(PROT_NONE);
  }

 private:
  void protect(int protection) {
    for (const auto& [data, bytes] : mappings_) mprotect(data, static_cast<size_t>(bytes), protection);
  }
  std::map<void*, int64_t> mappings_;
  int depth_ = 0;
};

}  // namespace

void* Device::allocate_staging(int64_t bytes) {
  void* data = std::aligned_alloc(64, static_cast<size_t>(round_up(std::max<int64_t>(bytes, 1), 64)));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

int64_t Device::free_bytes() const { return 0; }
int64_t Device::used_bytes() const { return 0; }

void Device::release_staging(void* data) { std::free(data); }

namespace {
thread_local const GpuMemoryExplanation* memory_explanation = nullptr;
}

GpuMemoryExplanation::GpuMemoryExplanation(std::function<std::string()> explanation)
    : explanation_(std::move(explanation)), before_(std::exchange(memory_explanation, this)) {}

GpuMemoryExplanation::~GpuMemoryExplanation() { memory_explanation = before_; }

std::string GpuMemoryExplanation::text() {
  const std::string text = memory_explanation != nullptr ? memory_explanation->explanation_() : "";
  return text.empty() ? "" : "\n" + text;
}

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

Device& guarded_device() {
  static GuardedDevice device;
  return device;
}

#if !BRISK_HAVE_CUDA
Device& cuda_device(int) {
  user_error("device: this brisk was built without CUDA; build it where nvcc is (-DBRISK_CUDA=ON), or use \"cpu\"");
}
bool built_with_cuda() { return false; }
std::vector<CudaGpu> cuda_gpus(std::string* why) {
  if (why != nullptr) *why = "this brisk was built without CUDA";
  return {};
}
#endif

Buffer::Buffer(Device& device, int64_t bytes) : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_, bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace brisk
