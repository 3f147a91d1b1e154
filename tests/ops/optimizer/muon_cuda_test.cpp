// Muon on a GPU against its reference.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "ops/optimizer/muon.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

using CudaMuon = OnGpu;

struct GpuWeight {
  GpuWeight(int64_t rows, int64_t cols, uint64_t seed)
      : p(rows, cols, DType::f32, seed),
        gradient(rows, cols, DType::f32, seed + 100, 0.01),
        momentum(rows, cols, DType::f32, seed + 200, 0.01),
        copy(rows, cols, DType::bf16, seed + 300) {}
  MuonMatrix at(Side side) const {
    const Tensor whole = p.at(side);
    return {.parameters = whole.f32(),
            .gradient = gradient.at(side).f32(),
            .momentum = momentum.at(side).f32(),
            .copy = copy.at(side).bf16(),
            .rows = whole.rows,
            .cols = whole.cols};
  }
  GpuMatrix p, gradient, momentum, copy;
};

TEST_F(CudaMuon, MatchesTheReferenceAndWritesTheBf16Copy) {
  // Equal shapes go together.
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{48, 48}, {96, 32}, {48, 48}, {32, 96},
                                                           {7, 5},   {48, 48}, {1, 9},   {130, 70}};
  for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
    // In bf16 each of 15 products rounds its factors to 8 bits; the update has entries of about 0.1 / sqrt(side).
    const double tolerance = arithmetic == Arithmetic::f32 ? 2e-5 : 4e-2;
    std::vector<std::unique_ptr<GpuWeight>> weights;
    std::vector<MuonMatrix> host, gpu;
    for (const auto& [rows, cols] : shapes) {
      weights.push_back(std::make_unique<GpuWeight>(rows, cols, weights.size() + 1));
      host.push_back(weights.back()->at(Side::host));
      gpu.push_back(weights.back()->at(Side::gpu));
    }
    ref::muon_update({host, nullptr, 0.1f, 0.9f, 0.5f, 0.25f});
    const Buffer workspace(cuda_device(), cuda::muon_workspace_floats(gpu) * 4);
    cuda::muon_update({gpu, static_cast<float*>(workspace.data()), 0.1f, 0.9f, 0.5f, 0.25f, arithmetic});
    for (size_t i = 0; i < shapes.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << shapes[i].first << " x " << shapes[i].second);
      weights[i]->p.expect_close(tolerance * 0.1, "p");
      weights[i]->momentum.expect_close(1e-7, "momentum");
      const auto &p = weights[i]->p.gpu(), &copy = weights[i]->copy.gpu();
      for (int64_t r = 0; r < p.rows(); ++r) {
        for (int64_t c = 0; c < p.cols(); ++c) ASSERT_EQ(copy.get(r, c), to_float(to_bf16(p.get(r, c))));
      }
    }
  }
}

TEST_F(CudaMuon, ChangesNothingWhereTheStepIsNotApplied) {
  GpuWeight weight(40, 24, 1);
  const testing::Matrix before(40, 24, DType::f32, 1);
  const MuonMatrix matrix = weight.at(Side::gpu);
  const Buffer workspace(cuda_device(), cuda::muon_workspace_floats({&matrix, 1}) * 4);
  Buffer numbers(cuda_device(), sizeof(StepNumbers));
  StepNumbers step;
  step.muon_rate = 0.1f;
  for (const float applied : {0.0f, 1.0f}) {
    step.applied = applied;
    cuda_device().copy_in(numbers.data(), &step, sizeof(step));
    MuonUpdate op{.matrices = {&matrix, 1}, .workspace = static_cast<float*>(workspace.data())};
    op.step = static_cast<const StepNumbers*>(numbers.data());
    cuda::muon_update(op);
    EXPECT_EQ(weight.p.gpu().get(3, 4) == before.get(3, 4), applied == 0);
  }
}

}  // namespace
}  // namespace brisk
