// A block of general ops whose values are read by several of them: nothing in it is known to brisk beforehand.
#include "support/odd_block.h"

namespace brisk {
namespace {

using testing::for_each_isa;
using testing::OddModel;
using testing::relative_distance;

TEST(OddBlock, GradientsAreTheSlopesOfTheLoss) {
  OddModel model(Backend::reference, cpu_device());
  EXPECT_LT(model.run(), 10);
  for (const auto& parameter : model.parameters().all()) {
    model.run();
    const std::vector<float> gradient = model.values_of(parameter->gradient);
    std::vector<float> values = model.values_of(parameter->master);
    const auto loss_at = [&](size_t entry, float shift) {
      const float before = values[entry];
      values[entry] += shift;
      model.parameters().write(*parameter, 0, values);
      values[entry] = before;
      return model.run();
    };
    double gap = 0, size = 0;
    for (size_t entry = 0; entry < values.size(); entry += std::max<size_t>(1, values.size() / 48)) {
      // The five-point rule: its error falls with the fourth power, so the shift can be large against fp32's rounding.
      const float h = 0.003f;
      const double slope =
          (8 * (loss_at(entry, h) - loss_at(entry, -h)) - (loss_at(entry, 2 * h) - loss_at(entry, -2 * h))) /
          (12.0 * h);
      gap += (slope - gradient[entry]) * (slope - gradient[entry]);
      size += slope * slope;
    }
    model.parameters().write(*parameter, 0, values);
    EXPECT_GT(std::sqrt(size), 0.01) << parameter->spec.name;
    EXPECT_LE(std::sqrt(gap), 2e-3 * std::sqrt(size) + 2e-4) << parameter->spec.name;
  }
}

TEST(OddBlock, IsTheReferencesOnTheCpuRecomputedAndOnUnreadableMemory) {
  OddModel reference(Backend::reference, cpu_device());
  const double loss = reference.run();
  for_each_isa([&](Isa) {
    OddModel model(Backend::cpu, cpu_device()), recomputed(Backend::cpu, cpu_device(), DType::f32, 1),
        guarded(Backend::cpu, guarded_device(), DType::f32, 2);
    EXPECT_NEAR(model.run(), loss, 1e-5 * loss);
    EXPECT_LT(relative_distance(model.gradients(), reference.gradients()), 1e-4);
    for (OddModel* other : {&recomputed, &guarded}) {
      EXPECT_EQ(other->run(), model.run());
      EXPECT_EQ(other->gradients(), model.gradients());
    }
  });
}

TEST(OddBlock, IsTheReferencesInBf16) {
  OddModel reference(Backend::reference, cpu_device(), DType::bf16), model(Backend::cpu, cpu_device(), DType::bf16);
  const double loss = reference.run();
  EXPECT_NEAR(model.run(), loss, 1e-2 * loss);
  EXPECT_LT(relative_distance(model.gradients(), reference.gradients()), 5e-2);
}

TEST(OddBlock, AttentionsOfSingleHeadsAreTheAttentionOfAll) {
  OddModel model(Backend::cpu, cpu_device());
  model.run();
  EXPECT_LT(relative_distance(model.attended_by_head(), model.attended()), 1e-5);
}

}  // namespace
}  // namespace brisk
