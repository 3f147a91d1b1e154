// What the CUDA tests share: the same matrix on the host, for the reference, and on the GPU, for what is tested.
//
//   GpuMatrix x(5, 64, DType::bf16, 1), y(5, 64, DType::bf16, 0, 0);
//   const auto op = [&](Side side) { return PointwiseForward{.x = x.at(side), .y = y.at(side)}; };
//   ref::pointwise_forward(op(Side::host));
//   cuda::pointwise_forward(op(Side::GPU));
//   y.expect_close(1e-2, "y");
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/numeric.h"
#include "tensor/device.h"

namespace brisk::testing {

// Tests of this fixture are skipped where there is no GPU.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  }
};

enum class Side { host, gpu };

class GpuMatrix {
 public:
  GpuMatrix(int64_t rows, int64_t cols, DType type = DType::f32, uint64_t seed = 1, double scale = 1.0,
            int64_t stride = 0)
      : host_(rows, cols, type, seed, scale, stride),
        got_(rows, cols, type, seed, scale, stride),
        gpu_(cuda_device(), std::max<int64_t>(16, bytes())) {
    cuda_device().copy_in(gpu_.data(), host_.view().data, bytes());
  }
  Tensor at(Side side) const {
    Tensor view = host_.view();
    if (side == Side::gpu) view.data = gpu_.data();
    return view;
  }
  Matrix& host() { return host_; }
  // What lies on the GPU now.
  const Matrix& gpu() {
    cuda_device().copy_out(got_.view().data, gpu_.data(), bytes());
    return got_;
  }
  // The GPU's from now on is what the reference wrote.
  void take_reference() { cuda_device().copy_in(gpu_.data(), host_.view().data, bytes()); }

  // The reference from now on is what the GPU wrote.
  void take_gpu() { cuda_device().copy_out(host_.view().data, gpu_.data(), bytes()); }

  // Nothing on the GPU is right until an op writes it.
  void spoil() {
    const std::vector<char> not_numbers(static_cast<size_t>(bytes()), static_cast<char>(0xFF));
    cuda_device().copy_in(gpu_.data(), not_numbers.data(), bytes());
  }

  void expect_close(double tolerance, const char* what) { testing::expect_close(gpu(), host_, tolerance, what); }
  void expect_equal(const char* what) {
    gpu();
    for (int64_t r = 0; r < host_.rows(); ++r) {
      for (int64_t c = 0; c < host_.cols(); ++c) ASSERT_EQ(got_.get(r, c), host_.get(r, c)) << what << r << ", " << c;
    }
  }

 private:
  int64_t bytes() const { return host_.view().rows * host_.view().stride * size_of(host_.view().type); }
  Matrix host_, got_;
  Buffer gpu_;
};

// Whole numbers: tokens, sources.
class GpuNumbers {
 public:
  explicit GpuNumbers(std::vector<int32_t> values) : host_(std::move(values)), gpu_(cuda_device(), bytes() + 16) {
    cuda_device().copy_in(gpu_.data(), host_.data(), bytes());
  }
  const int32_t* at(Side side) const {
    return side == Side::host ? host_.data() : static_cast<const int32_t*>(gpu_.data());
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(host_.size()) * size_of(DType::i32); }
  std::vector<int32_t> host_;
  Buffer gpu_;
};

// Sequences of the given lengths; `spare` rows more belong to none of them.
class GpuRows {
 public:
  explicit GpuRows(const std::vector<int>& lengths, int spare = 0)
      : ragged_(lengths),
        spare_(spare),
        starts_(ragged_.starts()),
        position_(with_spare(ragged_.view().position)),
        sequence_(with_spare(ragged_.view().sequence)) {}
  RowSet at(Side side) const {
    const RowSet rows = ragged_.view();
    return {rows.rows + spare_, rows.sequences,          rows.longest, starts_.at(side), position_.at(side),
            sequence_.at(side), rows.even && spare_ == 0};
  }
  int64_t rows() const { return ragged_.view().rows + spare_; }

 private:
  std::vector<int32_t> with_spare(const int32_t* values) const {
    std::vector<int32_t> all(values, values + ragged_.view().rows);
    all.resize(all.size() + static_cast<size_t>(spare_));
    return all;
  }
  Ragged ragged_;
  int spare_;
  GpuNumbers starts_, position_, sequence_;
};

}  // namespace brisk::testing
