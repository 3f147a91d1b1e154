#include "ops/cuda/cudnn_cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "ops/cuda/cuda_stream.h"

namespace brisk::cuda {

namespace {

constexpr int64_t kOldestCudnn = 91002;  // before it, attention has known faults

struct LoadedCudnn {
  Cudnn library = {};
  std::string missing;  // why there is none
};

LoadedCudnn load_cudnn() {
  LoadedCudnn loaded;
  void* library = nullptr;
  std::string why;
  for (const char* path : {BRISK_CUDNN_NAME, BRISK_CUDNN_PATH}) {
    if (library == nullptr) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr && why.empty()) why = dlerror();
  }
  if (library == nullptr) {
    loaded.missing = fmt::format("{} cannot be loaded ({})", BRISK_CUDNN_NAME, why);
    return loaded;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && loaded.missing.empty()) {
      loaded.missing = fmt::format("no {} in {}", name, BRISK_CUDNN_NAME);
    }
  };
  Cudnn& dnn = loaded.library;
  find("cudnnGetVersion", dnn.get_version);
  find("cudnnGetErrorString", dnn.get_error_string);
  find("cudnnGetLastErrorString", dnn.get_last_error_string);
  find("cudnnCreate", dnn.create);
  find("cudnnSetStream", dnn.set_stream);
  find("cudnnBackendCreateDescriptor", dnn.create_descriptor);
  find("cudnnBackendDestroyDescriptor", dnn.destroy_descriptor);
  find("cudnnBackendSetAttribute", dnn.set_attribute);
  find("cudnnBackendGetAttribute", dnn.get_attribute);
  find("cudnnBackendFinalize", dnn.finalize);
  find("cudnnBackendExecute", dnn.execute);
  if (!loaded.missing.empty()) return loaded;
  dnn.version = static_cast<int64_t>(dnn.get_version());
  if (dnn.version < kOldestCudnn) {
    loaded.missing = fmt::format("{} is of version {}, older than {}", BRISK_CUDNN_NAME, dnn.version, kOldestCudnn);
  }
  return loaded;
}

const LoadedCudnn& loaded_cudnn() {
  static const LoadedCudnn loaded = load_cudnn();
  return loaded;
}

}  // namespace

const Cudnn* cudnn() { return loaded_cudnn().missing.empty() ? &loaded_cudnn().library : nullptr; }

const std::string& cudnn_missing() { return loaded_cudnn().missing; }

cudnnHandle_t cudnn_handle() {
  static const cudnnHandle_t handle = [] {
    const cudaStream_t on = stream();  // chooses the GPU
    cudnnHandle_t made = nullptr;
    check_dnn(cudnn()->create(&made), "starting cuDNN");
    check_dnn(cudnn()->set_stream(made, on), "giving cuDNN a stream");
    return made;
  }();
  return handle;
}

void check_dnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> said = {};
  cudnn()->get_last_error_string(said.data(), said.size());
  throw CudnnRefusal(fmt::format("{}: {}: {}", what, cudnn()->get_error_string(status), said.data()));
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_dnn(cudnn()->create_descriptor(type, &descriptor_), "making a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnn()->destroy_descriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)) {}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                                      const void* values) {
  check_dnn(cudnn()->set_attribute(descriptor_, name, type, count, values),
            fmt::format("attribute {}", static_cast<int>(name)).c_str());
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

CudnnDescriptor& CudnnDescriptor::finalize(const char* what) {
  check_dnn(cudnn()->finalize(descriptor_), what);
  return *this;
}

int64_t CudnnDescriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t value = 0, count = 0;
  check_dnn(cudnn()->get_attribute(descriptor_, name, CUDNN_TYPE_INT64, 1, &count, &value), "asking for a number");
  return value;
}

}  // namespace brisk::cuda
