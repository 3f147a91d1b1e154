// Encoders that were saved without a head (AutoModel): they become runs to train from, and say so when asked.
#include <gtest/gtest.h>

#include "base/error.h"
#include "infer/answer/predict.h"
#include "infer/architecture/architecture.h"
#include "infer/open/import.h"
#include "infer/open/model_source.h"
#include "support/encoder_job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;
using test::ScratchFolder;
using testing::values_of;

std::string bare_folder() { return std::string(BRISK_GOLDEN) + "/encoders/bert_bare"; }

// The first weights of a job that starts from `path`, by name, and what was said about them.
struct Start {
  std::map<std::string, std::vector<float>> weights;
  std::string lines;
};

Start start_from(const std::string& path, const std::string& task) {
  const ModelSource source = open_model_source(path);
  Job job;
  job.task = task;
  job.model = source.model;
  if (task == "classify") job.model.num_labels = 3;
  ParameterStore store;
  const auto model = make_model(training_config(job), store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(7);
  Start start;
  for (const std::string& line : source.start(store, {}, NonFinite::refuse)) start.lines += line + "\n";
  for (const auto& parameter : store.all())
    start.weights[parameter->spec.name] = values_of(store.device(), parameter->master);
  return start;
}

class HeadlessEncoder : public ::testing::Test {
 protected:
  HeadlessEncoder() { result = import_model(bare_folder(), "", run); }

  ScratchFolder folder;
  std::string run = folder / "run";
  ImportResult result;
};

TEST_F(HeadlessEncoder, BecomesARunThatSaysItHasNoHead) {
  EXPECT_FALSE(result.has_head);
  EXPECT_EQ(result.job.task, "classify");
  const auto model = open_trained_model(run, "");
  EXPECT_EQ(model->model->classes(), 0);
  EXPECT_EQ(model->labels.count(), 0);
}

TEST_F(HeadlessEncoder, StartsAClassifierAndAMaskedModelAsItsFolderDoes) {
  for (const char* task : {"classify", "mlm"}) {
    const Start from_run = start_from(run, task), from_folder = start_from(bare_folder(), task);
    EXPECT_EQ(from_run.weights, from_folder.weights) << task;
    const char* is_new =
        task == std::string("mlm") ? "new weights: mlm_dense.weight" : "new weights: classifier.weight";
    EXPECT_TRUE(has(from_run.lines, is_new)) << from_run.lines;
  }
}

TEST_F(HeadlessEncoder, KeepsThePoolerForTheClassifierThatWillReadIt) {
  const Start start = start_from(run, "classify");
  EXPECT_FALSE(has(start.lines, "pooler")) << start.lines;
  ParameterStore drawn;
  drawn.add({"pooler.weight", 16, 16, true, true, {Initial::Kind::normal, 0.02}, {}, true, true});
  drawn.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  drawn.initialise(7);
  EXPECT_NE(start.weights.at("pooler.weight"), values_of(drawn.device(), drawn.all().front()->master));
}

TEST_F(HeadlessEncoder, CannotBeAskedAnything) {
  for (const std::string& path : {run, bare_folder()}) {
    const auto model = open_trained_model(path, "");
    const std::string message = message_of<UserError>([&] { Predictor predictor(*model); });
    EXPECT_TRUE(has(message, "an encoder without a head")) << message;
    EXPECT_TRUE(has(message, "\"from\": \"" + path + "\"")) << message;
  }
}

}  // namespace
}  // namespace brisk
