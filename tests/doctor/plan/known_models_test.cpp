#include "doctor/plan/known_models.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "infer/architecture/architecture.h"
#include "models/model_config.h"

namespace brisk {
namespace {

Job classifier() {
  Job job = job_from_json_text(R"({"task": "classify", "model": {"num_labels": 2}, "training": {"max_length": 128},
                                   "data": {"train": ["a.csv"]}})",
                               "job.json");
  resolve_defaults(job);
  job.model.num_labels = 2;
  return job;
}

TEST(KnownModels, HaveThePublishedNumbersOfParameters) {
  // Of BertForSequenceClassification and its like, two classes, as PyTorch counts them.
  const std::map<std::string, int64_t> expected = {{"BERT-base", 109'483'778},
                                                   {"DistilBERT", 66'955'010},
                                                   {"BERT-large", 335'143'938},
                                                   {"RoBERTa-base", 124'647'170},
                                                   {"BERT-tiny", 4'386'178}};
  int found = 0;
  for (const KnownModel& model : known_models()) {
    const auto its = expected.find(model.name);
    if (its == expected.end()) continue;
    ++found;
    ParameterStore store;
    make_model(training_config(job_with(model, classifier(), model.layers, model.vocabulary)), store);
    int64_t count = 0;
    for (const auto& parameter : store.all()) count += parameter->count();
    EXPECT_EQ(count, its->second) << model.name;
  }
  EXPECT_EQ(found, std::ssize(expected));
}

TEST(KnownModels, KeepTheJobsTraining) {
  const Job job = classifier(), changed = job_with(known_models().front(), job, 1, 5000);
  EXPECT_EQ(changed.training.batch_size, job.training.batch_size);
  EXPECT_EQ(changed.training.max_length, job.training.max_length);
  EXPECT_EQ(changed.model.num_layers, 1);
  EXPECT_EQ(changed.model.vocab_size, 5000);
}

}  // namespace
}  // namespace brisk
