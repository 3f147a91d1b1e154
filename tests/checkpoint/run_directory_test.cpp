#include "checkpoint/run_directory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checkpoint.h"
#include "support/broken_system.h"
#include "support/scratch_folder.h"
#include "train/record/metrics_log.h"

namespace brisk {
namespace {

using test::contents_of;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

using Mode = RunDirectory::Mode;

class RunDirectoryTest : public ::testing::Test {
 protected:
  std::string complaint(Mode mode) {
    return message_of<UserError>([&] { RunDirectory::open(path_, mode); });
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "runs/bible";
};

TEST_F(RunDirectoryTest, AFreshRunIsMadeWithItsParents) {
  const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
  EXPECT_FALSE(run.has_run());
  EXPECT_TRUE(is_directory(run.checkpoints_path()));
  EXPECT_EQ(run.job_path(), path_ + "/job.json");
}

TEST_F(RunDirectoryTest, AFreshRunNeverOverwritesAnother) {
  {
    const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
    put_contents(run.job_path(), "{}");
    put_contents(run.metrics_path(), "{\"step\": 1}\n");
  }
  const std::string message = complaint(Mode::fresh);
  EXPECT_TRUE(has(message, path_) && has(message, "--resume") && has(message, "--output")) << message;
  EXPECT_EQ(complaint(Mode::resume), "");
  EXPECT_TRUE(RunDirectory::open(path_, Mode::resume).has_run());
}

TEST_F(RunDirectoryTest, TheVocabularyOfAnEncoderIsAFileOfTheRunToo) {
  make_directories(path_);
  put_contents(path_ + "/job.json", "{}");
  put_contents(path_ + "/vocab.txt", "[PAD]\n");
  put_contents(path_ + "/vocab.txt.partial-12-7ffcd0", "[PA");
  RunDirectory run = RunDirectory::open(path_, Mode::overwrite);
  EXPECT_FALSE(file_exists(path_ + "/vocab.txt.partial-12-7ffcd0"));
  run.clear();
  EXPECT_FALSE(file_exists(path_ + "/vocab.txt"));
}

TEST_F(RunDirectoryTest, AFolderOfSomethingElseIsLeftAsItWas) {
  make_directories(path_);
  put_contents(path_ + "/letter.txt", "dear");
  EXPECT_TRUE(has(complaint(Mode::fresh), "letter.txt"));
  EXPECT_TRUE(has(complaint(Mode::resume), "letter.txt"));
  const auto files = std::filesystem::directory_iterator(path_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "not even a lock was written";
}

TEST_F(RunDirectoryTest, ARunKilledBeforeItWroteAnythingCanStartAgainEitherWay) {
  for (const Mode mode : {Mode::fresh, Mode::resume}) {
    make_directories(path_ + "/checkpoints/.step-00000001.partial");
    put_contents(path_ + "/job.json.partial-123", "{\"na");
    put_contents(path_ + "/.lock", "123");
    const RunDirectory run = RunDirectory::open(path_, mode);
    EXPECT_FALSE(run.has_run());
    EXPECT_FALSE(file_exists(path_ + "/job.json.partial-123"));
    EXPECT_FALSE(file_exists(path_ + "/checkpoints/.step-00000001.partial"));
  }
}

TEST_F(RunDirectoryTest, ARunKilledBeforeItsFirstStepCanStartAgainEitherWay) {
  for (const Mode mode : {Mode::fresh, Mode::resume}) {
    {
      const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
      for (const std::string& file : {run.job_path(), run.tokenizer_path(), run.ledger_path()})
        put_contents(file, "{}");
      put_contents(run.metrics_path(), "");
    }
    const RunDirectory run = RunDirectory::open(path_, mode);
    EXPECT_EQ(run.has_run(), mode == Mode::resume);
    EXPECT_EQ(file_exists(run.ledger_path()), mode == Mode::resume) << "a fresh run's ledger begins with itself";
  }
  put_contents(path_ + "/notes.txt", "mine");
  EXPECT_TRUE(has(complaint(Mode::fresh), "notes.txt"));
}

TEST_F(RunDirectoryTest, AJobThatAUserPutThereIsNotOurs) {
  folder_.write("runs/bible/job.json", "{}");
  EXPECT_TRUE(has(complaint(Mode::fresh), "already holds a run"));
  EXPECT_EQ(contents_of(path_ + "/job.json"), "{}");
}

TEST_F(RunDirectoryTest, ResumingAnEmptyFolderIsARunAtStepZero) {
  make_directories(path_);
  const RunDirectory run = RunDirectory::open(path_, Mode::resume);
  EXPECT_FALSE(run.has_run());
  EXPECT_EQ(run.cut_metrics(0), 0);
}

TEST_F(RunDirectoryTest, ThereIsNothingToResumeWhereThereIsNoSuchFolder) {
  const std::string message = complaint(Mode::resume);
  EXPECT_TRUE(has(message, path_ + ": there is no run to resume: there is no such folder")) << message;
  EXPECT_TRUE(has(message, "leave --resume out")) << message;
  EXPECT_FALSE(file_exists(path_)) << "a misspelt name makes no folder";
  folder_.write("runs/bibles/job.json", "{}");
  EXPECT_TRUE(has(complaint(Mode::resume), "did you mean " + path_ + "s?")) << complaint(Mode::resume);
}

TEST_F(RunDirectoryTest, AnImportIsNotToldToResume) {
  folder_.write("runs/bible/job.json", "{}");
  const std::string message = complaint(Mode::import);
  EXPECT_TRUE(has(message, "already holds a run") && has(message, "--output")) << message;
  EXPECT_FALSE(has(message, "--resume")) << message;
}

TEST_F(RunDirectoryTest, TwoTrainersCannotWriteOneRun) {
  auto first = std::make_unique<RunDirectory>(RunDirectory::open(path_, Mode::fresh));
  BRISK_EXPECT_CHILD_PASSES([&] {
    const std::string message = complaint(Mode::resume);
    EXPECT_TRUE(has(message, "another brisk") && has(message, std::to_string(getppid()))) << message;
  });
  first.reset();
  EXPECT_EQ(complaint(Mode::resume), "");
}

TEST_F(RunDirectoryTest, TheLockOfAKilledTrainerIsGone) {
  const int status = test::run_in_child([&] {
    const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
    raise(SIGKILL);
  });
  EXPECT_EQ(status, 128 + SIGKILL);
  EXPECT_EQ(complaint(Mode::resume), "");
}

TEST_F(RunDirectoryTest, MetricsAreCutBackToTheCheckpoint) {
  const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
  {
    MetricsLog log(run.metrics_path());
    for (int64_t step = 1; step <= 6; ++step) {
      log.append(StepMetrics{.step = step, .metrics = {standard_metric("loss", 1.0 / static_cast<double>(step))}});
      if (step % 3 == 0) log.append(EvaluationMetrics{.step = step});
    }
  }
  const std::string whole = contents_of(run.metrics_path());
  EXPECT_EQ(run.cut_metrics(6), 0);
  EXPECT_EQ(contents_of(run.metrics_path()), whole);
  EXPECT_EQ(run.cut_metrics(3), 4);
  EXPECT_EQ(contents_of(run.metrics_path()), whole.substr(0, contents_of(run.metrics_path()).size()));
  std::istringstream text(contents_of(run.metrics_path()));
  int64_t lines = 0;
  for (std::string line; std::getline(text, line); ++lines) EXPECT_LE(nlohmann::json::parse(line)["step"], 3);
  EXPECT_EQ(lines, 4);
  EXPECT_EQ(run.cut_metrics(0), 4);
  EXPECT_EQ(contents_of(run.metrics_path()), "");
}

TEST_F(RunDirectoryTest, ALineThatACrashCutShortGoesWhereverItWasCut) {
  const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
  const std::string first = to_json_line(StepMetrics{.step = 1}) + "\n";
  const std::string second = to_json_line(StepMetrics{.step = 2}) + "\n";
  for (size_t length = 0; length < second.size(); ++length) {
    put_contents(run.metrics_path(), first + second.substr(0, length));
    run.cut_metrics(2);
    ASSERT_EQ(contents_of(run.metrics_path()), first) << "cut at " << length;
  }
  put_contents(run.metrics_path(), first + std::string(300, '\0') + "\n[1]\n{\"step\":\"x\"}\n" + second);
  EXPECT_EQ(run.cut_metrics(2), 3);
  EXPECT_EQ(contents_of(run.metrics_path()), first + second);
}

TEST_F(RunDirectoryTest, ReadingNeedsAJobAndATokenizer) {
  const auto complaint = [&] { return message_of<UserError>([&] { RunDirectory::open_for_reading(path_); }); };
  EXPECT_TRUE(has(complaint(), "no such folder"));
  make_directories(path_);
  EXPECT_TRUE(has(complaint(), "no job.json"));
  put_contents(path_ + "/job.json", "{}");
  EXPECT_TRUE(has(complaint(), "no tokenizer.json"));
  put_contents(path_ + "/tokenizer.json", "{}");
  EXPECT_EQ(complaint(), "");
  EXPECT_FALSE(file_exists(path_ + "/.lock")) << "reading writes nothing";
  const RunDirectory training = RunDirectory::open(path_, Mode::resume);
  EXPECT_EQ(complaint(), "") << "a run can be read while it trains";
}

TEST_F(RunDirectoryTest, AFolderWithoutPermissionIsAUserError) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    make_directories(path_);
    chmod(path_.c_str(), 0555);
    chmod((folder_ / "runs").c_str(), 0555);
    test::lose_privileges();
    const std::string message = complaint(Mode::fresh);
    EXPECT_TRUE(has(message, path_) && has(message, "ermission")) << message;
    path_ = folder_ / "runs/other";
    EXPECT_TRUE(has(complaint(Mode::fresh), "ermission"));
  });
}

TEST_F(RunDirectoryTest, AReadOnlyFileSystemIsAUserError) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    test::mount_small_disk(folder_.path(), "size=64k");
    make_directories(path_);
    put_contents(path_ + "/job.json", "{}");
    test::remount_read_only(folder_.path());
    EXPECT_TRUE(has(complaint(Mode::resume), "another file system"));
    path_ = folder_ / "other";
    EXPECT_TRUE(has(complaint(Mode::fresh), "another file system"));
  });
}

// Somebody else's run folder may have links that lead anywhere.
TEST_F(RunDirectoryTest, LinksInItAreRefusedBeforeAnythingIsWrittenOrDeleted) {
  make_directories(folder_ / "elsewhere/.step-00000005.partial");
  put_contents(folder_ / "elsewhere/precious", "precious");
  for (const std::string name :
       {".lock", "job.json", "metrics.jsonl", "ledger.jsonl", "samples.jsonl", "summary.json", "report.html",
        "labels.json", "evaluation.json", "tokenizer.json", "checkpoints", "tensorboard", "summary.json.partial-1"}) {
    const bool is_folder = name == "checkpoints" || name == "tensorboard";
    make_directories(path_);
    if (name != "job.json") put_contents(path_ + "/job.json", "{}");
    std::filesystem::create_symlink(folder_ / (is_folder ? "elsewhere" : "elsewhere/precious"), path_ + "/" + name);
    const std::string message = complaint(Mode::resume);
    EXPECT_TRUE(has(message, path_ + "/" + name + ": it is a symbolic link to " + (folder_ / "elsewhere"))) << message;
    std::filesystem::remove_all(path_);
  }
  EXPECT_EQ(contents_of(folder_ / "elsewhere/precious"), "precious");
  EXPECT_TRUE(is_directory(folder_ / "elsewhere/.step-00000005.partial"));
}

TEST_F(RunDirectoryTest, MayItselfBeALinkThatTheUserMade) {
  make_directories(folder_ / "large_disk/bible");
  make_directories(folder_ / "runs");
  std::filesystem::create_directory_symlink(folder_ / "large_disk/bible", path_);
  const RunDirectory run = RunDirectory::open(path_, Mode::fresh);
  EXPECT_TRUE(is_directory(folder_ / "large_disk/bible/checkpoints"));
}

TEST_F(RunDirectoryTest, AFileInTheWayIsAUserError) {
  put_contents(folder_ / "runs", "a file");
  EXPECT_TRUE(has(complaint(Mode::fresh), folder_ / "runs"));
  EXPECT_TRUE(has(complaint(Mode::resume), folder_ / "runs"));
}

}  // namespace
}  // namespace brisk
