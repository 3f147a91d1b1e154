// Runs whose files do not belong together: labels, tokenizer, weights, configuration.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint_state.h"
#include "infer/open/import.h"
#include "infer/open/label_file.h"
#include "infer/open/model_source.h"
#include "infer/open/trained_model.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using Json = nlohmann::ordered_json;
using test::contents_of;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

std::string encoder_golden(const std::string& name) { return std::string(BRISK_GOLDEN) + "/encoders/" + name; }

// A classifier of negative, neutral and positive.
class DamagedRun : public ::testing::Test {
 protected:
  DamagedRun() { import_model(encoder_golden("bert"), "", run_); }

  std::string complaint(const std::string& tokenizer = "") {
    return message_of<UserError>([&] { open_trained_model(run_, tokenizer); });
  }
  void forget_checksums() {  // as a run of an earlier brisk
    const std::string path = run_ + "/checkpoints/step-00000000/state.json";
    Json state = Json::parse(contents_of(path));
    state.erase("checksum");
    state.erase("run_files");
    put_contents(path, state.dump());
  }

  ScratchFolder folder_;
  std::string run_ = folder_ / "run";
};

// As a failure or a kill in the middle leaves it: the import can be repeated.
TEST_F(DamagedRun, ThatWasNotImportedToItsEndIsImportedAgain) {
  const auto again = [&] { return message_of<UserError>([&] { import_model(encoder_golden("bert"), "", run_); }); };
  EXPECT_TRUE(has(again(), "it already holds a run"));
  std::filesystem::remove(run_ + "/job.json");
  EXPECT_TRUE(has(again(), "it already holds a run")) << "somebody removed it, and the checkpoint may be precious";
  put_contents(run_ + "/.unfinished", "");
  put_contents(run_ + "/vocab.txt.partial-12-7ffcd0", "[PA");
  EXPECT_EQ(again(), "");
  EXPECT_EQ(complaint(), "");
  EXPECT_EQ(names_in(run_), (std::vector<std::string>{".lock", "checkpoints", "job.json", "labels.json", "summary.json",
                                                      "tokenizer.json", "tokenizer_config.json", "vocab.txt"}));
  put_contents(run_ + "/.unfinished", "");
  put_contents(run_ + "/notes.txt", "somebody's");
  EXPECT_EQ(again(), "");
  EXPECT_EQ(contents_of(run_ + "/notes.txt"), "somebody's");
}

TEST_F(DamagedRun, WithLabelsThatAreNotItsOwnSaysSo) {
  EXPECT_EQ(complaint(), "");
  const std::string labels = run_ + "/labels.json";
  put_contents(labels, R"(["positive", "neutral", "negative"])");
  EXPECT_TRUE(has(complaint(), labels + ": not the file that the run was saved with")) << complaint();
  std::filesystem::remove(labels);
  EXPECT_TRUE(has(complaint(), labels + ": no such file")) << complaint();
  forget_checksums();
  EXPECT_TRUE(has(complaint(), labels + ": no such file; it has the names of the classifier's 3 classes"))
      << complaint();
  put_contents(labels, R"(["no", "yes"])");
  EXPECT_TRUE(has(complaint(), labels + ": it names 2 classes, but the model has 3")) << complaint();
  put_contents(labels, R"(["no", "yes", "no"])");
  EXPECT_TRUE(has(complaint(), labels + ": classes 0 and 2 have the same name, \"no\"")) << complaint();
  put_contents(labels, R"({"no": 1})");
  EXPECT_TRUE(has(complaint(), labels + ": expected a list of the names")) << complaint();
  put_contents(labels, R"(["a", "b", "c"])");
  EXPECT_EQ(complaint(), "");
}

TEST_F(DamagedRun, WithATokenizerThatIsNotItsOwnSaysSo) {
  const std::string tokenizer = run_ + "/tokenizer.json";
  std::string text = contents_of(tokenizer);
  put_contents(tokenizer, text + " ");
  EXPECT_TRUE(has(complaint(), tokenizer + ": not the file that the run was saved with")) << complaint();
  EXPECT_EQ(complaint(encoder_golden("bert")), "") << "one that is named is used";
  forget_checksums();
  EXPECT_EQ(complaint(), "");
  Json json = Json::parse(text);
  json["post_processor"] = nullptr;
  put_contents(tokenizer, json.dump());
  EXPECT_TRUE(has(complaint(), "puts no special token ([CLS], <s>) before a text")) << complaint();
  const std::string letters = std::string(BRISK_GOLDEN) + "/hub/gpt2";
  EXPECT_TRUE(has(complaint(letters), "the model has a vocabulary of 24, but the tokenizer has 260 entries"))
      << complaint(letters);
}

TEST_F(DamagedRun, WithAJobOfAnotherModelIsRefusedBeforeThereIsMemoryForIt) {
  Json job = Json::parse(contents_of(run_ + "/job.json"));
  job["model"]["vocab_size"] = 1 << 24;
  job["model"]["d_ff"] = 1 << 20;
  put_contents(run_ + "/job.json", job.dump());
  const std::string message = message_of<UserError>([&] { open_model_source(run_); });
  EXPECT_TRUE(has(message, "'embedding.weight' is F32 [24, 16], expected F32 [16777216, 16]")) << message;
}

TEST(ClassifierOfAnotherProblem, IsNotServedButCanBeTrainedFrom) {
  const ScratchFolder folder;
  std::filesystem::copy(encoder_golden("bert"), folder.path(), std::filesystem::copy_options::recursive);
  Json config = Json::parse(contents_of(folder / "config.json"));
  config["problem_type"] = "multi_label_classification";
  put_contents(folder / "config.json", config.dump());
  const std::string message = message_of<UserError>([&] { open_trained_model(folder.path(), ""); });
  EXPECT_TRUE(has(message, "problem_type is \"multi_label_classification\"; brisk serves")) << message;
  const ModelSource source = open_model_source(folder.path());
  ParameterStore store;
  make_model(source.config, store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  const std::vector<std::string> lines = source.start(store, {}, NonFinite::refuse);
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(has(lines.front(), "new weights: classifier.weight")) << lines.front();
}

}  // namespace
}  // namespace brisk
