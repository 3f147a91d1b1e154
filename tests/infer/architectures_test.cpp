// The table of architectures, and what a job knows of it.
#include <gtest/gtest.h>

#include "infer/architecture/architecture.h"
#include "job/tables.h"

namespace brisk {
namespace {

TEST(Architectures, AreTrainedByEveryTask) {
  for (const TaskTraits& task : all_tasks()) EXPECT_FALSE(types_for_task(task.name).empty()) << task.name;
  EXPECT_EQ(tasks_for_type("bert"), std::vector<std::string>({"classify", "mlm"}));
  EXPECT_EQ(alternatives(types_for_task("mlm")), "bert, distilbert or roberta");
  EXPECT_EQ(alternatives(types_for_task("language_model")), "decoder");
}

TEST(Architectures, MakeAConfigurationOfEveryType) {
  ASSERT_EQ(architectures().size(), all_architectures().size());
  for (const ArchitectureTraits& traits : all_architectures()) {
    for (const std::string& type : traits.types) {
      Job job;
      job.model.type = type;
      EXPECT_EQ(job.model.is_encoder(), traits.is_encoder);
      job.task = tasks_for_type(type).front();
      resolve_defaults(job);
      ParameterStore store;
      const ModelConfig config = training_config(job);
      const std::unique_ptr<Model> model = make_model(config, store);
      EXPECT_EQ(model->causal() == nullptr, traits.is_encoder) << type;
      EXPECT_EQ(fingerprint(config), fingerprint(architecture_of(job.model).training_config(job)));
      EXPECT_FALSE(architecture_of(job.model).describe(job).empty());
    }
  }
}

}  // namespace
}  // namespace brisk
