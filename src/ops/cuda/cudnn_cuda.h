// cuDNN, loaded when attention first asks for it: brisk starts and runs without it.
//
//   if (const Cudnn* dnn = cudnn()) dnn->set_stream(dnn->handle(), stream());   // none: cudnn_missing() says why
//
// What cuDNN does not support is a CudnnRefusal: the caller uses another kernel.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace brisk::cuda {

struct Cudnn {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;

  int64_t version = 0;  // 91900 is 9.19.0
};

// None where it is not installed or too old: cudnn_missing() says why.
const Cudnn* cudnn();
const std::string& cudnn_missing();
// Of the process's GPU, on brisk's stream.
cudnnHandle_t cudnn_handle();

struct CudnnRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a CudnnRefusal with all that the library says where `status` is an error.
void check_dnn(cudnnStatus_t status, const char* what);

// A descriptor of the library's graphs.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                       const void* values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, int64_t value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, bool value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  CudnnDescriptor& finalize(const char* what);

  int64_t number(cudnnBackendAttributeName_t name) const;
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace brisk::cuda
