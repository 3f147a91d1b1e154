#include "base/files/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/append_file.h"
#include "base/files/files.h"
#include "base/terminal/work_bar.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class FileLocks : public ::testing::Test {
 protected:
  // Another process that holds the lock until a byte comes through the returned pipe, or it is killed.
  pid_t hold_elsewhere(int& release) {
    int ready[2], go[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(go), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      {
        const FileLock lock(folder + "/a.lock");
        char byte = 'x';
        if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(1);
        write_file_atomically(folder + "/made", "by the other");
      }
      ::_exit(0);
    }
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    release = go[1];
    return child;
  }

  const test::ScratchFolder scratch;
  const std::string& folder = scratch.path();
};

TEST_F(FileLocks, WaitForTheOtherProcessAndSaySoFirst) {
  int release = -1;
  const pid_t child = hold_elsewhere(release);
  int told = 0;
  {
    const FileLock lock(folder + "/a.lock", [&] {
      ++told;
      EXPECT_FALSE(file_exists(folder + "/made"));
      EXPECT_EQ(::write(release, "x", 1), 1);
    });
    EXPECT_EQ(told, 1);
    EXPECT_TRUE(file_exists(folder + "/made"));
    EXPECT_TRUE(file_exists(folder + "/a.lock"));  // the one that others find, not the one that was removed
  }
  EXPECT_FALSE(file_exists(folder + "/a.lock"));
  ::close(release);  // where it was not released, it ends now
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(FileLocks, OfAKilledProcessAreFree) {
  int release = -1;
  const pid_t child = hold_elsewhere(release);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(file_exists(folder + "/a.lock"));
  const FileLock lock(folder + "/a.lock", [] { FAIL() << "nobody holds it"; });
}

TEST_F(FileLocks, InNoFolderAreAUserError) { EXPECT_THROW(FileLock(folder + "/none/a.lock"), UserError); }

TEST_F(FileLocks, AppendFilesGoOnFromWhereTheyAreCut) {
  const std::string path = folder + "/a.building";
  { AppendFile(path).write("one two three", 13); }
  AppendFile file(path);
  EXPECT_EQ(file.size(), 13);
  file.cut(4);
  file.write("2", 1);
  char text[5];
  file.read(0, text, 5);
  EXPECT_EQ(std::string(text, 5), "one 2");
  EXPECT_THROW(file.read(3, text, 5), UserError);
  file.rename_to(folder + "/a");
  EXPECT_EQ(test::contents_of(folder + "/a"), "one 2");
  EXPECT_FALSE(file_exists(path));
}

TEST(WorkBar, ShowsShareSpeedAndTimeLeft) {
  EXPECT_EQ(format_work("tokens", 1 << 20, 4 << 20, 1 << 20, 100),
            "tokens [#######-----------------------] 1.00 MiB of 4.00 MiB, 1.00 MiB/s, 3.00 s left");
  EXPECT_EQ(format_work("tokens", 0, 4 << 20, 0, 20), "tokens 0 B of 4.00 MiB");
}

}  // namespace
}  // namespace brisk
