// The product that always works.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_stream.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"

namespace brisk::cuda {

namespace {

constexpr int kSide = 16;  // of the tile of a block

struct PlainMatrix {
  void* data;
  DType type;
  int64_t row_step, col_step;  // elements
  int64_t distance;

  __device__ int64_t place(int64_t batch, int64_t row, int64_t col) const {
    return batch * distance + row * row_step + col * col_step;
  }
  __device__ float get(int64_t batch, int64_t row, int64_t col) const {
    const int64_t at = place(batch, row, col);
    if (type == DType::f16) return load_one(static_cast<const f16_t*>(data) + at);
    return type == DType::bf16 ? load_one(static_cast<const bf16_t*>(data) + at) : static_cast<const float*>(data)[at];
  }
  __device__ void set(int64_t batch, int64_t row, int64_t col, float value) const {
    const int64_t at = place(batch, row, col);
    if (type == DType::f16) {
      store_one(static_cast<f16_t*>(data) + at, value);
    } else if (type == DType::bf16) {
      store_one(static_cast<bf16_t*>(data) + at, value);
    } else {
      static_cast<float*>(data)[at] = value;
    }
  }
};

struct PlainProduct {
  int64_t m, n, k;
  PlainMatrix a, b, c, addend;
  float factor, addend_factor;
};

__global__ void plain_product_kernel(const PlainProduct p) {
  __shared__ float a[kSide][kSide + 1], b[kSide][kSide + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kSide + threadIdx.y;
  const int64_t col = static_cast<int64_t>(blockIdx.y) * kSide + threadIdx.x;
  const int64_t batch = blockIdx.z;
  float sum = 0;
  for (int64_t first = 0; first < p.k; first += kSide) {
    const int64_t a_col = first + threadIdx.x, b_row = first + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = row < p.m && a_col < p.k ? p.a.get(batch, row, a_col) : 0.0f;
    b[threadIdx.y][threadIdx.x] = b_row < p.k && col < p.n ? p.b.get(batch, b_row, col) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kSide; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    __syncthreads();
  }
  if (row >= p.m || col >= p.n) return;
  sum *= p.factor;
  if (p.addend.data != nullptr) sum += p.addend_factor * p.addend.get(batch, row, col);
  p.c.set(batch, row, col, sum);
}

__global__ void hold_kernel(int64_t cycles) {
  const int64_t begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

PlainMatrix plain(const void* data, DType type, int64_t stride, bool transposed, int64_t distance) {
  return {const_cast<void*>(data), type, transposed ? 1 : stride, transposed ? stride : 1, distance};
}

}  // namespace

void hold_gpu(int64_t cycles) {
  hold_kernel<<<1, 1, 0, stream()>>>(cycles);
  BRISK_CUDA_LAUNCHED();
}

void multiply_plainly(const GemmProblem& p) {
  PlainProduct plainly{};
  plainly.m = p.m;
  plainly.n = p.n;
  plainly.k = p.k;
  plainly.a = plain(p.a.data, p.a.type, p.a.stride, p.a.transposed, p.a_distance);
  plainly.b = plain(p.b.data, p.b.type, p.b.stride, p.b.transposed, p.b_distance);
  plainly.c = plain(p.c.data, p.c.type, p.c.stride, false, p.c_distance);
  plainly.addend = plain(p.addend.data, p.addend.type, p.addend.stride, false, p.c_distance);
  plainly.factor = p.factor;
  plainly.addend_factor = p.addend_factor;
  const dim3 grid(static_cast<unsigned>(divide_up(p.m, kSide)), static_cast<unsigned>(divide_up(p.n, kSide)),
                  static_cast<unsigned>(p.batch));
  plain_product_kernel<<<grid, dim3(kSide, kSide), 0, stream()>>>(plainly);
  BRISK_CUDA_LAUNCHED();
}

}  // namespace brisk::cuda
