// When loss scaling falls and rises, and that a checkpoint keeps it.
#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint_state.h"
#include "support/scratch_folder.h"
#include "train/record/metrics_log.h"

namespace brisk {
namespace {

TEST(LossScale, HalvesWithEachGradientThatIsNotFiniteDownToOne) {
  LossScale scale;
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(scale.can_fall());
    scale.observe(false);
  }
  EXPECT_EQ(scale.scale, 1);
  EXPECT_FALSE(scale.can_fall());
  EXPECT_EQ(scale.skipped_steps, 16);
}

TEST(LossScale, DoublesAfterTwoThousandGoodStepsInARow) {
  LossScale scale{.scale = 8};
  for (int i = 0; i < 1999; ++i) scale.observe(true);
  EXPECT_EQ(scale.scale, 8);
  scale.observe(true);
  EXPECT_EQ(scale.scale, 16);
  for (int i = 0; i < 1999; ++i) scale.observe(true);
  scale.observe(false);  // the row begins anew
  EXPECT_EQ(scale.scale, 8);
  for (int i = 0; i < 1999; ++i) scale.observe(true);
  EXPECT_EQ(scale.scale, 8);
  LossScale most{.scale = LossScale::kMost, .good_steps = 1999};
  most.observe(true);
  EXPECT_EQ(most.scale, LossScale::kMost);
}

TEST(LossScale, IsKeptByACheckpointAndOfOtherRunsThereIsNone) {
  const test::ScratchFolder folder;
  const std::string path = folder.path() + "/" + kStateFile;
  CheckpointState state;
  write_file_atomically(path, checkpoint_state_to_json_text(state));
  EXPECT_FALSE(read_checkpoint_state(folder.path()).loss_scale.has_value());
  state.loss_scale = LossScale{.scale = 2048, .good_steps = 77, .skipped_steps = 5};
  write_file_atomically(path, checkpoint_state_to_json_text(state));
  EXPECT_EQ(read_checkpoint_state(folder.path()).loss_scale, state.loss_scale);
}

TEST(LossScale, OfAnImpossibleSizeIsRefused) {
  const test::ScratchFolder folder;
  CheckpointState state;
  state.loss_scale = LossScale{.scale = 0};
  write_file_atomically(folder.path() + "/" + kStateFile, checkpoint_state_to_json_text(state));
  EXPECT_THROW(read_checkpoint_state(folder.path()), UserError);
}

TEST(LossScale, IsInTheMetricsOfItsRuns) {
  EXPECT_EQ(to_json_line(StepMetrics{}).find("skipped_steps"), std::string::npos);
  const std::string line = to_json_line(StepMetrics{.loss_scale = LossScale{.scale = 512, .skipped_steps = 3}});
  EXPECT_NE(line.find(R"("skipped_steps": 3, "loss_scale": 512.0})"), std::string::npos) << line;
}

}  // namespace
}  // namespace brisk
