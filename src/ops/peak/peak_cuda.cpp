#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/peak/peak.h"
#include "tensor/device.h"

namespace brisk {

namespace {

constexpr int kPeakTrials = 10;

// Seconds of the fastest of several runs.
template <typename Work>
double shortest_time(const Work& work) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cuda::check(cudaEventCreate(&begin), "making an event");
  cuda::check(cudaEventCreate(&end), "making an event");
  float shortest = 0;
  work();
  for (int i = 0; i < kPeakTrials; ++i) {
    cuda::check(cudaEventRecord(begin, cuda::stream()), "timing");
    work();
    cuda::check(cudaEventRecord(end, cuda::stream()), "timing");
    cuda::check(cudaEventSynchronize(end), "timing");
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, begin, end), "timing");
    shortest = i == 0 ? milliseconds : std::min(shortest, milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1e-3 * static_cast<double>(shortest);
}

// Ordinary numbers: with zeros a GPU keeps a higher clock than it ever has in training.
void fill(const Buffer& buffer, DType type) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  std::vector<float> numbers(kBlock);
  std::vector<bf16_t> rounded(kBlock);
  for (int64_t i = 0; i < kBlock; ++i) {
    numbers[static_cast<size_t>(i)] = random_normal(random_key({1}), static_cast<uint64_t>(i));
    rounded[static_cast<size_t>(i)] = to_bf16(numbers[static_cast<size_t>(i)]);
  }
  const void* block = type == DType::bf16 ? static_cast<const void*>(rounded.data()) : numbers.data();
  const int64_t bytes = kBlock * size_of(type);
  for (int64_t at = 0; at + bytes <= buffer.bytes(); at += bytes) {
    buffer.device().copy_in(static_cast<char*>(buffer.data()) + at, block, bytes);
  }
}

}  // namespace

double gpu_product_gflops(Device& gpu, Arithmetic arithmetic) {
  const int64_t side = arithmetic == Arithmetic::f32 ? 4096 : 8192;
  // f16 is multiplied as fast as bf16.
  const bool sixteen_bits = arithmetic == Arithmetic::bf16 || arithmetic == Arithmetic::f16;
  const DType type = sixteen_bits ? DType::bf16 : DType::f32;
  const Buffer a(gpu, side * side * size_of(type)), b(gpu, side * side * size_of(type)),
      c(gpu, side * side * size_of(type));
  fill(a, type);
  fill(b, type);
  cuda::GemmProblem product{.m = side,
                            .n = side,
                            .k = side,
                            .a = operand(matrix(a.data(), type, side, side)),
                            .b = operand(matrix(b.data(), type, side, side), true),
                            .c = matrix(c.data(), type, side, side)};
  product.tf32 = arithmetic == Arithmetic::tf32;
  const double seconds =
      shortest_time([&] { BRISK_CHECK(cuda::multiply(product), "cuBLASLt cannot multiply squares"); });
  return 2e-9 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side) / seconds;
}

double gpu_copy_gb_per_second(Device& gpu) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Buffer from(gpu, kBytes), to(gpu, kBytes);
  const double seconds = shortest_time([&] {
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, cuda::stream()),
                "copying on the GPU");
  });
  return 2e-9 * static_cast<double>(kBytes) / seconds;
}

double gpu_launch_seconds(Device& gpu) {
  constexpr int kFills = 256;
  const Buffer place(gpu, 4);
  const std::unique_ptr<DeviceGraph> graph = gpu.record([&] {
    for (int i = 0; i < kFills; ++i)
      cuda::check(cudaMemsetAsync(place.data(), i, 4, cuda::stream()), "filling memory of the GPU");
  });
  return shortest_time([&] { graph->run(); }) / kFills;
}

}  // namespace brisk
