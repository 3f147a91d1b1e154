// Several processes that train one model take the same decisions, whatever each one's clock and measurements say.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "train/engine/process_group.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

// The first process: what it says is written down.
class FirstProcess final : public ProcessGroup {
 public:
  double sum(double own) override { return own; }
  void sum(StepState&) override {}
  std::vector<double> said;

 protected:
  double first(double own) override { return said.emplace_back(own); }
};

// Another one: it hears what the first said, and not what it would say itself.
class OtherProcess final : public ProcessGroup {
 public:
  explicit OtherProcess(std::vector<double> said) : said_(std::move(said)) {}
  double sum(double own) override { return own; }
  void sum(StepState&) override {}
  bool heard_all() const { return heard_ == said_.size(); }

 protected:
  double first(double own) override {
    EXPECT_LT(heard_, said_.size()) << "it asks for more than the first process said";
    return heard_ < said_.size() ? said_[heard_++] : own;
  }

 private:
  std::vector<double> said_;
  size_t heard_ = 0;
};

class Agreement : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("text.txt", testing::prose(8000, 7)); }

  // Steps, losses and rates of a run with this group.
  using Curve = std::vector<std::tuple<int64_t, double, double>>;
  Curve run(const std::string& training, const std::string& output, ProcessGroup& processes) const {
    Job job = job_from_json_text(R"({
      "device": "cpu", "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300}, "training": {
      "batch_size": 8, "max_length": 32, "threads": 1, "logging_steps": 1, "precision": "fp32", "seed": 3, )" +
                                     training + "}}",
                                 "job.json");
    job.data.train = {DataSource(folder_ / "text.txt")};
    job.data.cache_dir = folder_ / "cache";
    job.output = folder_ / output;
    resolve_defaults(job);
    train(job, {.processes = &processes});
    Curve curve;
    std::istringstream lines(test::contents_of(folder_ / output + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json metrics = nlohmann::json::parse(line);
      if (metrics.contains("learning_rate")) {
        curve.emplace_back(metrics["step"], metrics["loss"], metrics["learning_rate"]);
      }
    }
    return curve;
  }

  void expect_the_same(const std::string& training) const {
    FirstProcess first;
    const Curve curve = run(training, "first", first);
    OtherProcess other(first.said);
    EXPECT_EQ(run(training, "other", other), curve);
    EXPECT_TRUE(other.heard_all());
    EXPECT_GE(curve.size(), 2u);
  }

  const test::ScratchFolder folder_;
};

TEST_F(Agreement, IsOnTheRateOfEveryStepOfARunThatEndsOnTime) {
  expect_the_same(R"("stop": "1s", "eval_steps": 40, "save_minutes": 0.005)");
}

TEST_F(Agreement, IsOnThePlaceToGoBackTo) {
  expect_the_same(
      R"("max_steps": 80, "save_steps": 10, "learning_rate": 1, "max_grad_norm": 0, "lr_scheduler": "constant")");
}

}  // namespace
}  // namespace brisk
