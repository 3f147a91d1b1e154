// cuBLASLt, loaded when the first product runs on a GPU: linking it would cost every start of brisk 0.16 s and 210 MiB.
//
//   const CublasLt& blas = cublaslt();           // UserError if it is not installed
//   blas.matmul(blas.handle, ...);               // as cublasLtMatmul
#pragma once

#include <cublasLt.h>

namespace brisk::cuda {

struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtGetStatusString) get_status_string;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoCheck) matmul_algo_check;
  decltype(&cublasLtMatmulAlgoConfigSetAttribute) matmul_algo_config_set_attribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic;
  decltype(&cublasLtMatmulDescInit_internal) matmul_desc_init;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute;
  decltype(&cublasLtMatmulPreferenceCreate) matmul_preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) matmul_preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute;
  decltype(&cublasLtMatrixLayoutInit_internal) matrix_layout_init;
  decltype(&cublasLtMatrixLayoutSetAttribute) matrix_layout_set_attribute;

  cublasLtHandle_t handle = nullptr;  // on the process's GPU
};

const CublasLt& cublaslt();
// Throws where `status` is an error.
void check_blas(cublasStatus_t status, const char* what);

}  // namespace brisk::cuda
