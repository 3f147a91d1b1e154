// A full disk: refused before the start where it can be known, survived where it cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

// A small file system of its own under `folder`, for as long as this object lives.
class SmallDisk {
 public:
  SmallDisk(const TemporaryFolder& folder, int64_t bytes) : path_(folder / "disk") {
    std::filesystem::create_directory(path_);
    const std::string options = "size=" + std::to_string(bytes);
    if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) == 0) return;
    problem_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (problem_.empty()) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }  // empty: there is a disk

  bool make_read_only() { return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

  // Leaves about `bytes` free. A process that was told to stop may still write for a moment: what it takes is not filled.
  void fill_up_to(int64_t bytes) {
    std::ofstream filler(path_ + "/filler", std::ios::binary);
    const std::string page(4096, 'x');
    struct statvfs facts {};
    while (::statvfs(path_.c_str(), &facts) == 0 && filler &&
           static_cast<int64_t>(facts.f_bavail * facts.f_frsize) >= bytes + std::ssize(page)) {
      filler << page << std::flush;
    }
  }
  void empty() { std::filesystem::remove(path_ + "/filler"); }

 private:
  std::string path_, problem_;
};

class FullDisk : public ::testing::Test {
 protected:
  FullDisk() : disk(folder, int64_t{6} << 20) {
    write_text(folder / "text.txt", english_like_text(60));
    Json job = small_job();
    job["training"]["save_steps"] = 10;
    job["training"]["save_total_limit"] = 1;
    job["training"]["load_best_model_at_end"] = false;
    job["training"]["max_steps"] = 1000000;
    write_job(folder, job);
  }
  void SetUp() override {
    if (!disk.problem().empty()) {
      GTEST_SKIP() << "no small file system can be mounted here (" << disk.problem() << "): run as root to test this";
    }
  }

  TemporaryFolder folder;
  SmallDisk disk;
};

TEST_F(FullDisk, IsKnownBeforeTheRunStarts) {
  disk.fill_up_to(300 << 10);
  const std::string before = listing(disk.path());
  const Outcome outcome = run_brisk({"train", "job.json", "--output", disk.path() + "/run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* part : {"the disk has", "free", "--output"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(outcome.err.find("save_total_limit"), std::string::npos) << "fewer than one does not help: " << outcome.err;
  EXPECT_EQ(listing(disk.path()), before);
}

TEST_F(FullDisk, WhereAllAreKeptTheAdvisedLimitFits) {
  Json job = read_json(folder / "job.json");
  job["training"]["save_total_limit"] = 0;
  job["training"]["max_steps"] = 40;
  job["training"]["save_steps"] = 1;
  write_job(folder, job);
  const Outcome refused = run_brisk({"train", "job.json", "--output", disk.path() + "/run"}, folder);
  EXPECT_EQ(refused.exit_code, 2);
  const std::string advice = "set training.save_total_limit to ";
  const size_t found = refused.err.find(advice);
  ASSERT_NE(found, std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("(now 0, which keeps all)"), std::string::npos) << refused.err;
  job["training"]["save_total_limit"] = std::stoi(refused.err.substr(found + advice.size()));
  write_job(folder, job);
  const Outcome followed = run_brisk({"train", "job.json", "--output", disk.path() + "/run"}, folder);
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
}

TEST_F(FullDisk, KeepsTheLastCheckpointAndTheRunGoing) {
  const std::string run = disk.path() + "/run";
  Process process({"train", "job.json", "--output", run}, folder);
  ASSERT_TRUE(process.wait_for("step 25/"));
  process.send(SIGSTOP);
  const std::vector<std::string> before = checkpoints_of(run);
  disk.fill_up_to(0);
  process.send(SIGCONT);
  // It says so, names what is kept, and trains on.
  ASSERT_TRUE(process.wait_for("was not saved"));
  ASSERT_TRUE(process.wait_for("is kept"));
  ASSERT_TRUE(process.wait_for("step 400/"));
  disk.empty();
  // With room again, the next save succeeds, and the lines that waited are all there.
  process.sleep(0.3);
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err.substr(outcome.err.size() - 2000);
  EXPECT_FALSE(before.empty());
  EXPECT_GT(checkpoints_of(run).back(), before.back());
  const std::vector<Json> lines = step_lines(metrics_of(run));
  for (size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i]["step"], i + 1);
  EXPECT_GE(lines.size(), 400U);
}

TEST_F(FullDisk, AtTheEndIsAFailureThatCanBeMended) {
  Json job = read_json(folder / "job.json");
  job["training"]["max_steps"] = 120;
  train_small(folder, job, "reference");
  write_job(folder, job);
  const std::string run = disk.path() + "/run";
  Process process({"train", "job.json", "--output", run}, folder);
  ASSERT_TRUE(process.wait_for("step 15/"));
  process.send(SIGSTOP);
  disk.fill_up_to(0);
  process.send(SIGCONT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("the last checkpoint could not be saved"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos) << outcome.err;
  disk.empty();
  const Outcome resumed = run_brisk({"train", "job.json", "--output", run, "--resume"}, folder);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(curve_of(run), curve_of(folder / "reference"));
  EXPECT_EQ(last_model_bytes(run), last_model_bytes(folder / "reference"));
}

TEST_F(FullDisk, ThatIsReadOnlyIsRefused) {
  if (!disk.make_read_only()) GTEST_SKIP() << "cannot remount it read-only";
  const Outcome outcome = run_brisk({"train", "job.json", "--output", disk.path() + "/run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("Read-only file system"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace brisk::program
