// The table of architectures and the options of a job know the same model types and tasks.
#include <gtest/gtest.h>

#include <algorithm>

#include "infer/architecture/architecture.h"
#include "job/job_options.h"

namespace brisk {
namespace {

std::vector<std::string> choices_of(const std::string& path) {
  Job job;
  for (const Option& option : declare_job_options(job)) {
    if (option.path == path) return option.choices;
  }
  return {};
}

TEST(Architectures, AreThoseThatAJobCanName) {
  std::vector<std::string> known, choices = choices_of("model.type");
  for (const Architecture* architecture : architectures())
    std::ranges::copy(architecture->types(), back_inserter(known));
  std::ranges::sort(known);
  std::ranges::sort(choices);
  EXPECT_EQ(known, choices);
}

TEST(Architectures, TrainWithTasksThatThereAre) {
  for (const std::string& task : choices_of("task")) {
    EXPECT_TRUE(std::ranges::any_of(architectures(), [&](const Architecture* one) { return one->trains_with(task); }))
        << task;
  }
  EXPECT_FALSE(architecture_of(ModelOptions{.type = "bert"}).trains_with("language_model"));
}

TEST(Architectures, MakeAConfigurationOfEveryType) {
  for (const Architecture* architecture : architectures()) {
    for (const std::string& type : architecture->types()) {
      Job job;
      job.task = architecture->tasks().front();
      job.model.type = type;
      resolve_defaults(job);
      ParameterStore store;
      const ModelConfig config = training_config(job);
      const std::unique_ptr<Model> model = make_model(config, store);
      EXPECT_EQ(model->causal() != nullptr, architecture->trains_with("language_model")) << type;
      EXPECT_EQ(fingerprint(config), fingerprint(architecture->training_config(job)));
      EXPECT_FALSE(architecture->describe(job).empty());
    }
  }
}

}  // namespace
}  // namespace brisk
