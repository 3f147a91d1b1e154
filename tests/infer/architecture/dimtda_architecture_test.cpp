// DIMTDA by a job's options: its sizes are those of the paper's models.
#include <gtest/gtest.h>

#include "infer/architecture/architecture.h"
#include "infer/architecture/unread_options.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

Job dimtda_job(const std::string& keys) {
  Job job = job_from_json_text(R"({"task": "image_to_text", "model": {"type": "dimtda")" + keys + "}}", "job.json");
  resolve_defaults(job);
  return job;
}

int64_t parameters_of(const Job& job) {
  ParameterStore store;  // declared, without memory
  const auto model = make_model(training_config(job), store);
  return store.count();
}

TEST(DimtdaArchitecture, HasAsManyParametersAsTheModelOfThePaper) {
  EXPECT_EQ(parameters_of(dimtda_job("")), 209729433);
}

TEST(DimtdaArchitecture, HasTheOfficialSizes) {
  const Job job = dimtda_job(R"(, "queries": 1024, "query_width": 1024, "num_layers": 6)");
  EXPECT_EQ(parameters_of(job), 242547097);
}

TEST(DimtdaArchitecture, ReadsAPageTwice) {
  const Job job = dimtda_job("");
  const ImageLayout layout = architecture_of(job.model).image_layout(job.model);
  ASSERT_EQ(layout.images.size(), 2u);
  EXPECT_EQ(layout.images[0].rows(), 224 * 168);
  EXPECT_EQ(layout.images[1].rows(), 197);
  EXPECT_EQ(layout.fixed_rows, (std::vector<int64_t>{112 * 84, 56 * 42, 28 * 21, 256}));
  EXPECT_EQ(job.training.max_length, 1536);
}

TEST(DimtdaArchitecture, FreezesItsEncodersAlone) {
  Job job = dimtda_job(R"(, "image_encoder_from": "nougat")");
  job.training.freeze_encoders = true;
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { training_config(job); }), "model.layout_encoder_from"));
  job.model.layout_encoder_from = "dit";
  ParameterStore store;
  const auto model = make_model(training_config(job), store);
  for (const auto& parameter : store.all()) {
    const std::string& name = parameter->spec.name;
    const bool frozen =
        name.starts_with("page_encoder.") || name.starts_with("layout_encoder.") || name.starts_with("layout_unread.");
    EXPECT_EQ(parameter->spec.trained, !frozen) << name;
  }
}

TEST(DimtdaArchitecture, SaysWhichSizesDoNotFit) {
  for (const auto& [keys, expected] : {std::pair{R"("image_size": [890, 672])", "890"},
                                       {R"("query_heads": 7)", "model.query_width = 512"},
                                       {R"("layout_image_size": 220)", "model.layout_image_size"},
                                       {R"("image_encoder": "vit")", "model.image_encoder"},
                                       {R"("encoder_layers": 5)", "does not apply"}}) {
    const std::string message = test::message_of<UserError>([&, text = std::string(keys)] {
      const Job job = dimtda_job(", " + text);
      check_model_options(job);
      training_config(job);
    });
    EXPECT_TRUE(test::has(message, expected)) << keys << ": " << message;
  }
}

}  // namespace
}  // namespace brisk
