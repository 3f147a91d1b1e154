#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/terminal/terminal.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/gemm/cuda/cublaslt_cuda.h"
#include "ops/gemm/cuda/gemm_tuning_cuda.h"
#include "ops/tape/gpu_workspace.h"
#include "tensor/gpu_memory.h"

namespace brisk::cuda {

namespace {

constexpr size_t kWorkspaceBytes = kGemmWorkspaceBytes / 2;
constexpr int kCandidates = 24;
constexpr size_t kSplitCandidates = 6;  // of these, the depth is divided too, where the result is small
constexpr int kTrials = 3;
constexpr int64_t kWorthAWarning = int64_t{1} << 24;  // multiply-adds
constexpr int64_t kSmallResult = int64_t{8} << 20;    // elements: few tiles for each multiprocessor

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    case DType::e4m3: return CUDA_R_8F_E4M3;
    case DType::e5m2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
  }
}

bool has_eight_bits(const GemmProblem& p) { return size_of(p.a.type) == 1; }

cublasLtEpilogue_t epilogue_of(const GemmProblem& p) {
  if (p.a_sums != nullptr) return CUBLASLT_EPILOGUE_BGRADB;
  if (p.gelu_gradient) return CUBLASLT_EPILOGUE_DGELU;
  if (p.gelu && p.before) return p.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (p.gelu) return p.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return p.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// cuBLASLt's matrices lie by columns. Ours, by rows, are their transposes there: C^T = B^T A^T, so b comes first.
class Call {
 public:
  explicit Call(const GemmProblem& p) : product_(p) {
    check_blas(cublaslt().matmul_desc_init(&operation_, sizeof(operation_),
                                           p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describing a product");
    const cublasOperation_t first = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    const cublasLtEpilogue_t epilogue = epilogue_of(p);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (has_eight_bits(p)) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.b.scale);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.a.scale);
      // Sums in the tensor cores' own few bits, as they come: faster, and good enough for activations. Gradients (e5m2)
      // are summed in fp32 every 128 products.
      const int8_t fast = p.a.type == DType::e4m3 && p.b.type == DType::e4m3 ? 1 : 0;
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
      if (p.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
    }
    point_outputs(p.before.data, p.a_sums);
    if (p.before) {
      const int64_t stride = p.before.stride;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(p.before.type));
    }
    lay_out(first_, p.b.type, p.b.transposed ? p.k : p.n, p.b.transposed ? p.n : p.k, p.b.stride, p.b_distance);
    lay_out(second_, p.a.type, p.a.transposed ? p.m : p.k, p.a.transposed ? p.k : p.m, p.a.stride, p.a_distance);
    const Tensor& addend = p.addend ? p.addend : p.c;
    lay_out(added_, addend.type, p.n, p.m, addend.stride, p.c_distance);
    lay_out(result_, p.c.type, p.n, p.m, p.c.stride, p.c_distance);
  }

  // What the epilogue reads and writes besides.
  void point_outputs(void* before, float* a_sums) {
    if (product_.before) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before);
    if (product_.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product_.bias);
    if (product_.a_sums != nullptr) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, a_sums);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    }
  }

  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm, void* c, const void* addend) {
    const float beta = product_.addend ? product_.addend_factor : 0.0f;
    return cublaslt().matmul(cublaslt().handle, &operation_, &product_.factor, product_.b.data, &first_,
                             product_.a.data, &second_, &beta, addend, &added_, c, &result_, &algorithm,
                             gemm_workspace(), kWorkspaceBytes, stream());
  }
  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm) {
    return run(algorithm, product_.c.data, product_.addend ? product_.addend.data : product_.c.data);
  }

  bool can_run(const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t status = cublaslt().matmul_algo_check(cublaslt().handle, &operation_, &first_, &second_,
                                                               &added_, &result_, &algorithm, &result);
    return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kWorkspaceBytes;
  }

  // With the depth divided among several, whose results are then added in a fixed order.
  std::vector<cublasLtMatmulAlgo_t> divided(const std::vector<cublasLtMatmulAlgo_t>& algorithms) {
    std::vector<cublasLtMatmulAlgo_t> all;
    for (size_t i = 0; i < std::min(kSplitCandidates, algorithms.size()); ++i) {
      for (const int32_t parts : {2, 3, 4, 6, 8, 12, 16}) {
        cublasLtMatmulAlgo_t algorithm = algorithms[i];
        const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        const auto set = cublaslt().matmul_algo_config_set_attribute;
        if (set(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof(parts)) == CUBLAS_STATUS_SUCCESS &&
            set(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof(scheme)) == CUBLAS_STATUS_SUCCESS &&
            can_run(algorithm)) {
          all.push_back(algorithm);
        }
      }
    }
    return all;
  }

  // What the library said when it was last asked for candidates.
  const char* said() const { return cublaslt().get_status_string(status_); }

  std::vector<cublasLtMatmulAlgo_t> candidates(int most) {
    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(cublaslt().matmul_preference_create(&preference), "asking for algorithms");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_blas(cublaslt().matmul_preference_set_attribute(preference, attribute, &value, sizeof(value)),
                 "a preference");
    };
    const GemmProblem& p = product_;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of_all(p.b.data, p.b_distance * size_of(p.b.type)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of_all(p.a.data, p.a_distance * size_of(p.a.type)));
    const int64_t c_distance = p.c_distance * size_of(p.c.type);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
           alignment_of_all(p.addend ? p.addend.data : p.c.data, c_distance));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of_all(p.c.data, c_distance));
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
    int found = 0;
    const cublasStatus_t status =
        cublaslt().matmul_algo_get_heuristic(cublaslt().handle, &operation_, &first_, &second_, &added_, &result_,
                                             preference, std::min(most, kCandidates), results.data(), &found);
    cublaslt().matmul_preference_destroy(preference);
    status_ = status;
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; i < found && status == CUBLAS_STATUS_SUCCESS; ++i) {
      if (results[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        algorithms.push_back(results[static_cast<size_t>(i)].algo);
    }
    return algorithms;
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_blas(cublaslt().matmul_desc_set_attribute(&operation_, attribute, &value, sizeof(value)),
               "describing a product");
  }
  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, DType type, int64_t rows, int64_t cols, int64_t stride,
               int64_t distance) const {
    check_blas(cublaslt().matrix_layout_init(&layout, sizeof(layout), type_of(type), static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(cols), stride),
               "describing a matrix");
    if (product_.batch == 1) return;
    const auto batch = static_cast<int32_t>(product_.batch);
    check_blas(
        cublaslt().matrix_layout_set_attribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)),
        "describing a batch");
    check_blas(cublaslt().matrix_layout_set_attribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
                                                      sizeof(distance)),
               "describing a batch");
  }

  const GemmProblem& product_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t first_ = {}, second_ = {}, added_ = {}, result_ = {};
};

// What an algorithm is chosen for.
using Key = TunedAlgorithms::Key;

// Of the operands' types, and of what they are rounded to.
int64_t number_of(const GemmProblem& p) {
  const int64_t other = p.b.type == p.a.type ? 0 : static_cast<int64_t>(p.b.type) + 1;
  return static_cast<int64_t>(p.a.type) + 8 * other + (p.tf32 ? 64 : 0);
}

Key key_of(const GemmProblem& p, int64_t m, int64_t n, int64_t k) {
  const auto alignment = [](const void* pointer) { return static_cast<int64_t>(alignment_of_all(pointer, 0)); };
  return {m,
          n,
          k,
          p.a.stride,
          p.b.stride,
          p.c.stride,
          p.addend.stride,
          p.before.stride,
          p.batch,
          number_of(p),
          static_cast<int64_t>(p.c.type),
          static_cast<int64_t>(p.before.type),
          p.a.transposed,
          p.b.transposed,
          static_cast<int64_t>(epilogue_of(p)),
          static_cast<bool>(p.addend),
          p.addend.data == p.c.data,
          alignment(p.a.data),
          alignment(p.b.data),
          alignment(p.c.data),
          alignment(p.addend.data),
          alignment(p.before.data)};
}

// Ragged batches have a new number of rows each time; neighbours share their algorithm.
int64_t neighbourhood(int64_t size) { return leading_bits(size, 4); }

// The fastest of the candidates that can, each run a few times. Where the result is added to what is there, they write
// into memory of the trial's own, for as long as it takes; elsewhere what they leave is overwritten by the run that
// counts. `tried` is whether there was room for that.
std::optional<cublasLtMatmulAlgo_t> fastest(Call& call, const GemmProblem& p,
                                            const std::vector<cublasLtMatmulAlgo_t>& algorithms, bool& tried) {
  const bool adds = p.addend && p.addend.data == p.c.data;
  const int64_t c_bytes = (((p.batch - 1) * p.c_distance) + p.m * p.c.stride) * size_of(p.c.type);
  void* const own = adds ? allocate_or_null(c_bytes) : nullptr;
  tried = !adds || own != nullptr;
  if (!tried) return algorithms.front();  // the library's own first choice
  void* const trial = adds ? own : p.c.data;
  std::optional<cublasLtMatmulAlgo_t> best;
  float best_time = 0;
  const void* addend = p.addend && !adds ? p.addend.data : trial;
  for (size_t i = 0; i < algorithms.size(); ++i) {
    if (call.run(algorithms[i], trial, addend) != CUBLAS_STATUS_SUCCESS) continue;
    const float time = shortest_milliseconds([&] { call.run(algorithms[i], trial, addend); });
    if (!best || time < best_time) {
      best_time = time;
      best = algorithms[i];
    }
  }
  if (own != nullptr) release(own, c_bytes);
  return best;
}

TunedAlgorithms& timed_algorithms() {
  static const std::string of = gpu_name();
  return tuned_algorithms(of, static_cast<int64_t>(cublaslt().get_version()));
}

}  // namespace

bool has_gemm_library(std::string& why) {
  try {
    cublaslt();
    return true;
  } catch (const UserError& error) {
    why = error.what();
    return false;
  }
}

// Of a few runs. Short work is run several times behind a kernel that holds the GPU, so that the host's queueing,
// which a graph does not have, is not in it.
float shortest_milliseconds(const std::function<void()>& work) {
  constexpr float kShort = 0.3f;
  constexpr int kTogether = 4;
  constexpr int64_t kHeldCycles = 160'000;  // about 80 us
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  const auto measured = [&](int runs) {
    if (runs > 1) hold_gpu(kHeldCycles);
    check(cudaEventRecord(begin, stream()), "timing a product");
    for (int r = 0; r < runs; ++r) work();
    check(cudaEventRecord(end, stream()), "timing a product");
    check(cudaEventSynchronize(end), "timing a product");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "timing a product");
    return milliseconds / static_cast<float>(runs);
  };
  work();  // not timed: it may choose algorithms
  float shortest = measured(1);
  const int runs = shortest < kShort ? kTogether : 1;
  if (runs > 1) shortest = measured(runs);
  for (int t = 1; t < kTrials; ++t) shortest = std::min(shortest, measured(runs));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return shortest;
}

// 256 bytes at most. (A shift by more would be undefined: large buffers lie on multiples of 4 GiB now and then.)
uint32_t alignment_of_all(const void* pointer, int64_t distance_bytes) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer) | static_cast<uintptr_t>(distance_bytes);
  return 1u << std::min(8, std::countr_zero(address));
}

// To be raised when the passes that stand in for epilogues change: what was timed with others is forgotten.
constexpr int64_t kPasses = 1;

void run_faster(Fusion kind, const GemmProblem& p, const std::function<bool()>& fused,
                const std::function<void()>& apart) {
  static std::map<Key, bool> decided;
  const Key key = {-static_cast<int64_t>(kind),
                   neighbourhood(p.m),
                   neighbourhood(p.n),
                   neighbourhood(p.k),
                   number_of(p),
                   static_cast<int64_t>(p.c.type),
                   static_cast<bool>(p.before),
                   kPasses};
  auto known = decided.find(key);
  if (known == decided.end()) {
    if (const auto* choice = timed_algorithms().find(key)) known = decided.emplace(key, choice->front() != 0).first;
  }
  if (known != decided.end()) {
    if (!known->second || !fused()) apart();
    return;
  }
  if (!fused()) {
    decided[key] = false;
    return apart();
  }
  if (is_captured() || !wants_timing()) return;
  const float fused_time = shortest_milliseconds([&] { fused(); });
  const bool is_faster = fused_time <= shortest_milliseconds(apart);
  timed_algorithms().add(key, {is_faster ? 1u : 0u});
  decided[key] = is_faster;
  if (is_faster) fused();  // what is left behind is what it will leave from now on
}

bool can_multiply(const GemmProblem& p) {
  static std::map<Key, bool> known;
  const auto [entry, is_new] = known.try_emplace(key_of(p, p.m, p.n, p.k));
  if (is_new) entry->second = !Call(p).candidates(1).empty();
  return entry->second;
}

bool multiply(const GemmProblem& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return true;
  BRISK_CHECK(p.k > 0 && (p.a.type == p.b.type || (has_eight_bits(p) && size_of(p.b.type) == 1)),
              "a product over {} of two types", p.k);
  static std::map<Key, std::optional<cublasLtMatmulAlgo_t>> exact;
  Call call(p);
  const auto [entry, is_new] = exact.try_emplace(key_of(p, p.m, p.n, p.k));
  if (is_new) {
    const Key near = key_of(p, neighbourhood(p.m), neighbourhood(p.n), neighbourhood(p.k));
    TunedAlgorithms& timed = timed_algorithms();
    const TunedAlgorithms::Algorithm* known = timed.find(near);
    if (known != nullptr && call.can_run(std::bit_cast<cublasLtMatmulAlgo_t>(*known))) {
      entry->second = std::bit_cast<cublasLtMatmulAlgo_t>(*known);
    } else {
      const bool times = wants_timing() && !is_captured();
      std::vector<cublasLtMatmulAlgo_t> algorithms = call.candidates(times ? kCandidates : 1);
      // A weight's gradient: a small result of a deep product leaves most of the GPU idle unless the depth is divided.
      if (times && p.k >= 2048 && p.m * p.n <= kSmallResult && p.batch == 1) {
        const std::vector<cublasLtMatmulAlgo_t> more = call.divided(algorithms);
        algorithms.insert(algorithms.end(), more.begin(), more.end());
      }
      if (algorithms.size() > 1) {
        bool tried = false;
        entry->second = fastest(call, p, algorithms, tried);
        if (tried && entry->second) timed.add(near, std::bit_cast<TunedAlgorithms::Algorithm>(*entry->second));
      } else if (!algorithms.empty()) {
        entry->second = algorithms.front();
      }
    }
  }
  if (!entry->second) {
    const bool is_plain = epilogue_of(p) == CUBLASLT_EPILOGUE_DEFAULT && !has_eight_bits(p);
    if (is_plain && is_new && p.m * p.n * p.k > kWorthAWarning) {
      warn("cuBLASLt has no algorithm for [{}, {}] by [{}, {}] ({}): a slow kernel multiplies them", p.m, p.k, p.k, p.n,
           call.said());
    }
    if (is_plain) multiply_plainly(p);
    return is_plain;
  }
  check_blas(call.run(*entry->second), "multiplying matrices");
  return true;
}

}  // namespace brisk::cuda
