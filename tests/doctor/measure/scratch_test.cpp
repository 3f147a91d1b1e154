// The folder of the doctor's runs: removed at its end, and where a doctor was killed by the next one.
#include "doctor/measure/scratch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "support/scratch_folder.h"

namespace brisk {
namespace {

namespace fs = std::filesystem;

void make_old(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST(ScratchFolderOfTheDoctor, IsRemovedAtTheEnd) {
  const test::ScratchFolder folder;
  std::string path;
  {
    const ScratchFolder scratch(folder / "runs/job");
    path = scratch.path();
    EXPECT_TRUE(fs::is_directory(path));
    EXPECT_EQ(fs::path(path).parent_path(), fs::path(folder / "").parent_path()) << "beside the run";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolderOfTheDoctor, RemovesWhatAKilledDoctorLeftAndNothingElse) {
  const test::ScratchFolder folder;
  const ScratchFolder running(folder / "job");
  make_old(running.path() + "/.lock");
  const std::string left = folder / ".brisk-doctor-abcdef", other = folder / ".brisk-doctor-notes",
                    link = folder / ".brisk-doctor-linked";
  for (const std::string& path : {left, other, folder / "elsewhere"}) {
    fs::create_directories(path + "/1");
    test::put_contents(path + "/1/job.json", "{}");
  }
  for (const std::string& path : {left, folder / "elsewhere"}) {
    test::put_contents(path + "/.lock", "");
    make_old(path + "/.lock");
  }
  fs::create_directory_symlink(folder / "elsewhere", link);
  const ScratchFolder scratch(folder / "job");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other)) << "without a lock it is nobody's whom we know";
  EXPECT_TRUE(fs::exists(link) && fs::exists(folder / "elsewhere/1/job.json"));
  EXPECT_TRUE(fs::exists(running.path())) << "its lock is held";
}

}  // namespace
}  // namespace brisk
