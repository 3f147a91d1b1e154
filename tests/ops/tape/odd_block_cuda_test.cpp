// The block of general ops on a GPU: queued op by op and as a recorded graph.
#include "ops/tape/gpu_workspace.h"
#include "support/odd_block.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::OddModel;
using testing::relative_distance;

using CudaOddBlock = testing::OnGpu;

TEST_F(CudaOddBlock, IsTheReferences) {
  for (const DType type : {DType::f32, DType::bf16}) {
    OddModel reference(Backend::reference, cpu_device(), type), model(Backend::cuda, cuda_device(), type),
        recomputed(Backend::cuda, cuda_device(), type, 1);
    const double loss = reference.run();
    EXPECT_NEAR(model.run(), loss, (type == DType::f32 ? 1e-5 : 1e-2) * loss);
    EXPECT_LT(relative_distance(model.gradients(), reference.gradients()), type == DType::f32 ? 1e-3 : 5e-2);
    EXPECT_EQ(recomputed.run(), model.run());
    EXPECT_EQ(recomputed.gradients(), model.gradients());
  }
}

TEST_F(CudaOddBlock, IsTheSameAsARecordedGraph) {
  OddModel model(Backend::cuda, cuda_device(), DType::bf16);
  cuda::reserve_workspace(gpu_workspace_bytes(model.tape()));
  model.run();
  const std::vector<float> gradients = model.gradients();
  const std::unique_ptr<DeviceGraph> graph = cuda_device().record([&] { model.queue(); });
  for (int repeat = 0; repeat < 2; ++repeat) {
    graph->run();
    EXPECT_EQ(model.gradients(), gradients);
  }
}

}  // namespace
}  // namespace brisk
