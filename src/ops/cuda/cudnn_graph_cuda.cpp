#include "ops/cuda/cudnn_graph_cuda.h"

#include <fmt/format.h>

#include <algorithm>

namespace brisk::cuda {

namespace {

constexpr int64_t kMostConfigurations = 16;

// What an engine says of itself.
std::string engine_name(const CudnnDescriptor& engine) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes = {};
  int64_t count = 0;
  cudnn()->get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                         static_cast<int64_t>(notes.size()), &count, notes.data());
  std::string name = fmt::format("engine {}", engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  for (size_t i = 0; i < std::min(notes.size(), static_cast<size_t>(count)); ++i) {
    if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) name += ", not deterministic";
  }
  return name;
}

}  // namespace

CudnnShape packed(const std::array<int64_t, 4>& dims) {
  return {dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
}

CudnnShape transposed(const CudnnShape& shape) {
  CudnnShape turned = shape;
  std::swap(turned.dims[2], turned.dims[3]);
  std::swap(turned.strides[2], turned.strides[3]);
  return turned;
}

CudnnPlan::CudnnPlan(CudnnDescriptor plan, std::string name)
    : plan_(std::move(plan)),
      name_(std::move(name)),
      workspace_bytes_(plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void CudnnPlan::run(std::span<const std::pair<int64_t, void*>> pointers, void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> places;
  for (const auto& [id, pointer] : pointers) {
    ids.push_back(id);
    places.push_back(pointer);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(places.size()),
           places.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finalize("what a plan works on");
  check_dnn(cudnn()->execute(cudnn_handle(), plan_.get(), pack.get()), "running a plan");
}

CudnnTensor CudnnGraph::add(const CudnnShape& shape, cudnnDataType_t type, bool is_passing, bool is_scalar,
                            const CudnnTensor& offsets) {
  const CudnnTensor added{static_cast<int64_t>(tensors_.size()) + 1, shape, type};
  CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, added.id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_passing)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, is_scalar);
  if (offsets.id > 0) made.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, of(offsets));
  made.finalize("a tensor");
  tensors_.push_back(std::move(made));
  return added;
}

CudnnTensor CudnnGraph::memory(const CudnnShape& shape, cudnnDataType_t type, const CudnnTensor& offsets) {
  return add(shape, type, false, false, offsets);
}

CudnnTensor CudnnGraph::scalar(cudnnDataType_t type) { return add(packed({1, 1, 1, 1}), type, false, true, {}); }

CudnnTensor CudnnGraph::passing(const CudnnShape& shape, cudnnDataType_t type, const CudnnTensor& offsets) {
  return add(shape, type, true, false, offsets);
}

CudnnTensor CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b,
                                  const Pointwise& how) {
  const CudnnTensor y = how.y.id > 0 ? how.y : passing(x.shape);
  CudnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, how.computes);
  if (how.axis >= 0) kind.set(CUDNN_ATTR_POINTWISE_AXIS, how.axis);
  kind.finalize("a pointwise kind");
  CudnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y));
  if (b.id > 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(b));
  if (how.select.id > 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(how.select));
  made.finalize("a pointwise operation");
  kinds_.push_back(std::move(kind));
  operations_.push_back(std::move(made));
  return y;
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t mode, const CudnnTensor& x, const CudnnTensor& y) {
  CudnnDescriptor kind(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize("a kind of sum");
  CudnnDescriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(y))
      .finalize("a sum");
  kinds_.push_back(std::move(kind));
  operations_.push_back(std::move(made));
}

void CudnnGraph::reshape(const CudnnTensor& x, const CudnnTensor& y) {
  CudnnDescriptor made(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y))
      .finalize("a change of shape");
  operations_.push_back(std::move(made));
}

void CudnnGraph::multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c, const Counts& counts) {
  CudnnDescriptor kind(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize("a kind of product");
  CudnnDescriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a))
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b))
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c));
  if (counts.m.id > 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, of(counts.m));
  if (counts.n.id > 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, of(counts.n));
  if (counts.k.id > 0) made.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, of(counts.k));
  made.finalize("a product");
  kinds_.push_back(std::move(kind));
  operations_.push_back(std::move(made));
}

void CudnnGraph::operation(cudnnBackendDescriptorType_t type,
                           std::span<const std::pair<cudnnBackendAttributeName_t, CudnnTensor>> tensors) {
  CudnnDescriptor made(type);
  for (const auto& [attribute, tensor] : tensors) {
    if (tensor.id > 0) made.set(attribute, of(tensor));
  }
  made.finalize("an operation");
  operations_.push_back(std::move(made));
}

CudnnPlan CudnnGraph::plan() {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.get());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations.size()),
            operations.data());
  const cudnnHandle_t handle = cudnn_handle();
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle).finalize("a graph");

  std::string why = "no engine was proposed";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor proposer(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    proposer.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    try {
      proposer.finalize("asking for engines");
    } catch (const CudnnRefusal& refusal) {
      why = refusal.what();
      continue;
    }
    std::vector<CudnnDescriptor> proposed;
    std::vector<cudnnBackendDescriptor_t> places;
    for (int64_t i = 0; i < kMostConfigurations; ++i) {
      proposed.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      places.push_back(proposed.back().get());
    }
    int64_t count = 0;
    check_dnn(cudnn()->get_attribute(proposer.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     kMostConfigurations, &count, places.data()),
              "asking for engines");
    for (int64_t i = 0; i < std::min(count, kMostConfigurations); ++i) {
      try {
        const CudnnDescriptor& configuration = proposed[static_cast<size_t>(i)];
        CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
            .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
            .finalize("a plan");
        CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        cudnnBackendDescriptor_t place = engine.get();
        int64_t engines = 0;
        check_dnn(cudnn()->get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engines, &place),
                  "asking for an engine");
        return CudnnPlan(std::move(plan), engine_name(engine));
      } catch (const CudnnRefusal& refusal) {
        why = refusal.what();
      }
    }
  }
  throw CudnnRefusal(why);
}

}  // namespace brisk::cuda
