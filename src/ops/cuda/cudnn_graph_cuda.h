// A graph of cuDNN's operations, built once per shape, and the plan it runs by.
//
//   CudnnGraph graph;
//   const CudnnTensor a = graph.memory({{1, 1, 64, 32}, {2048, 2048, 32, 1}}, CUDNN_DATA_BFLOAT16);
//   const CudnnTensor sum = graph.pointwise(CUDNN_POINTWISE_ADD, a, a);    // virtual: never stored
//   ...
//   CudnnPlan plan = graph.plan();                                         // CudnnRefusal if no engine supports it
//   plan.run({{a.id, pointer}, ...}, workspace);
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ops/cuda/cudnn_cuda.h"

namespace brisk::cuda {

// Batch, heads, rows, columns.
struct CudnnShape {
  std::array<int64_t, 4> dims, strides;
};
CudnnShape packed(const std::array<int64_t, 4>& dims);
CudnnShape transposed(const CudnnShape& shape);  // rows and columns changed places

struct CudnnTensor {
  int64_t id = 0;  // 0: none
  CudnnShape shape = {};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

class CudnnPlan {
 public:
  int64_t workspace_bytes() const { return workspace_bytes_; }
  const std::string& name() const { return name_; }  // of the engine, for people
  // Pointers by the tensors' ids: to device memory, or to host memory for scalars.
  void run(std::span<const std::pair<int64_t, void*>> pointers, void* workspace) const;

 private:
  friend class CudnnGraph;
  CudnnPlan(CudnnDescriptor plan, std::string name);
  CudnnDescriptor plan_;
  std::string name_;
  int64_t workspace_bytes_;
};

class CudnnGraph {
 public:
  // What lies in device memory. `offsets` [batch + 1] say where each sequence begins, in elements.
  CudnnTensor memory(const CudnnShape& shape, cudnnDataType_t type, const CudnnTensor& offsets = {});
  // One number in host memory.
  CudnnTensor scalar(cudnnDataType_t type);
  // What an operation leaves for others alone.
  CudnnTensor passing(const CudnnShape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT,
                      const CudnnTensor& offsets = {});

  // y, or a new passing tensor of x's shape; `computes` is the type it computes in. `select` is what BINARY_SELECT
  // decides by.
  struct Pointwise {
    CudnnTensor y = {};
    cudnnDataType_t computes = CUDNN_DATA_FLOAT;
    CudnnTensor select = {};
    int64_t axis = -1;
  };
  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b, const Pointwise& how);
  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b = {}) {
    return pointwise(mode, x, b, Pointwise{});
  }
  void reduce(cudnnReduceTensorOp_t mode, const CudnnTensor& x, const CudnnTensor& y);
  void reshape(const CudnnTensor& x, const CudnnTensor& y);
  // c = a b. Of each sequence, so many rows, columns and depth count.
  struct Counts {
    CudnnTensor m = {}, n = {}, k = {};
  };
  void multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c, const Counts& counts);
  // An operation of its own kind; its tensors by attribute.
  void operation(cudnnBackendDescriptorType_t type,
                 std::span<const std::pair<cudnnBackendAttributeName_t, CudnnTensor>> tensors);

  CudnnPlan plan();

 private:
  CudnnTensor add(const CudnnShape& shape, cudnnDataType_t type, bool is_passing, bool is_scalar,
                  const CudnnTensor& offsets);
  const CudnnDescriptor& of(const CudnnTensor& t) const { return tensors_[static_cast<size_t>(t.id - 1)]; }

  std::vector<CudnnDescriptor> tensors_, kinds_, operations_;
};

}  // namespace brisk::cuda
