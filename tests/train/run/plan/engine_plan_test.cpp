#include "train/run/plan/engine_plan.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "infer/forward/image_batch_layout.h"
#include "support/image_to_text_job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

// Its micro-batches have a second row set, with three quarters of the first one's rows.
class PairTask final : public Task {
 public:
  TaskData prepare(const Job&, DataRequest) override { return {}; }
  BatchLayout batch_layout(const Job&) const override {
    BatchLayout layout;
    layout.others = {{[](const RowCapacity& first) {
      return RowCapacity{first.rows * 3 / 4, first.sequences, first.longest};
    }}};
    return layout;
  }
  Description describe_data(const Job&, const TaskData&, const PackingFigures&) const override { return {}; }
  Metrics metrics() const override { return token_metrics(); }
  EvaluationData open_evaluation(const TrainedModel&, const EvaluationRequest&) const override { return {}; }
};

EngineOptions plan(int64_t micro_batch_tokens, const std::vector<LengthFigures>& lengths) {
  Job job =
      job_from_json_text(R"({"model": {"vocab_size": 300, "d_model": 32}, "training": {"batch_size": 1}})", "job");
  resolve_defaults(job);
  job.training.micro_batch_tokens = micro_batch_tokens;
  return plan_engine(PairTask(), job, cpu_device(), lengths).options;
}

TEST(EnginePlan, HoldsTheLongestSequenceOfEveryRowSet) {
  const std::vector<LengthFigures> lengths = {{.longest = 6, .mean = 6}, {.longest = 9, .mean = 9}};
  EXPECT_EQ(plan(0, lengths).capacity.rows, 12);
  EXPECT_EQ(plan(12, lengths).capacity.rows, 12);
  EXPECT_EQ(plan(0, {lengths[0]}).capacity.rows, 6);
}

TEST(EnginePlan, RefusesMicroBatchesThatAreTooSmallForASecondRowSet) {
  const std::vector<LengthFigures> lengths = {{.longest = 6, .mean = 6}, {.longest = 9, .mean = 9}};
  const std::string message = test::message_of<UserError>([&] { plan(11, lengths); });
  EXPECT_TRUE(test::has(message, "training.micro_batch_tokens 11")) << message;
  EXPECT_TRUE(test::has(message, "use 12 or more")) << message;
}

TEST(EnginePlan, RefusesSequencesThatNoMicroBatchHolds) {
  BatchLayout layout;
  layout.others = {{[](const RowCapacity& first) { return RowCapacity{8, first.sequences, 8}; }}};
  EXPECT_EQ(layout.least_rows(std::vector<int64_t>{5, 8}), 5);
  const std::string message = test::message_of<UserError>([&] { layout.least_rows(std::vector<int64_t>{5, 9}); });
  EXPECT_TRUE(test::has(message, "9 rows in row set 1")) << message;
}

TEST(ComputedLengths, PadTheTextsOfImagesToTheMaxLengthAndNotTheirPatches) {
  const ImageLayout images{{ImageInput::resized(8, 8, 4, /*class_row=*/true)}, {}};
  TaskData data;
  data.train = data.validation = std::make_shared<testing::RandomImages>(images, std::vector<int>{3, 7}, 20);
  TrainingOptions training;
  training.padding = "max_length";
  training.max_length = 32;
  Padding padding;
  computed_lengths(training, data, image_text_layout(images, {.rows = 7, .longest = 7}), padding);
  EXPECT_EQ(padding.lengths, (std::vector<int64_t>{5, 32}));
}

}  // namespace
}  // namespace brisk
