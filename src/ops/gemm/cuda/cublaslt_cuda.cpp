#include "ops/gemm/cuda/cublaslt_cuda.h"

#include <dlfcn.h>

#include "base/error.h"
#include "ops/cuda/cuda_stream.h"

namespace brisk::cuda {

namespace {

// By its name, where the system finds it, or where it lay when brisk was built.
void* open_library() {
  for (const char* path : {BRISK_CUBLASLT_NAME, BRISK_CUBLASLT_PATH}) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  user_error("{} cannot be loaded ({}); install cuBLAS of CUDA {}, add its folder to LD_LIBRARY_PATH, or use \"cpu\"",
             BRISK_CUBLASLT_NAME, dlerror(), CUDART_VERSION / 1000);
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) user_error("{}: no {} in it; is it of another CUDA?", BRISK_CUBLASLT_NAME, name);
}

CublasLt load() {
  stream();  // chooses the GPU
  void* library = open_library();
  CublasLt blas = {};
  find(library, "cublasLtCreate", blas.create);
  find(library, "cublasLtGetVersion", blas.get_version);
  find(library, "cublasLtGetStatusString", blas.get_status_string);
  find(library, "cublasLtMatmul", blas.matmul);
  find(library, "cublasLtMatmulAlgoCheck", blas.matmul_algo_check);
  find(library, "cublasLtMatmulAlgoConfigSetAttribute", blas.matmul_algo_config_set_attribute);
  find(library, "cublasLtMatmulAlgoGetHeuristic", blas.matmul_algo_get_heuristic);
  find(library, "cublasLtMatmulDescInit_internal", blas.matmul_desc_init);
  find(library, "cublasLtMatmulDescSetAttribute", blas.matmul_desc_set_attribute);
  find(library, "cublasLtMatmulPreferenceCreate", blas.matmul_preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", blas.matmul_preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", blas.matmul_preference_set_attribute);
  find(library, "cublasLtMatrixLayoutInit_internal", blas.matrix_layout_init);
  find(library, "cublasLtMatrixLayoutSetAttribute", blas.matrix_layout_set_attribute);
  const cublasStatus_t status = blas.create(&blas.handle);
  BRISK_CHECK(status == CUBLAS_STATUS_SUCCESS, "starting cuBLASLt: {}", blas.get_status_string(status));
  return blas;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt library = load();
  return library;
}

void check_blas(cublasStatus_t status, const char* what) {
  BRISK_CHECK(status == CUBLAS_STATUS_SUCCESS, "{}: {}", what, cublaslt().get_status_string(status));
}

}  // namespace brisk::cuda
