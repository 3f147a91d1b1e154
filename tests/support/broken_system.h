// Processes in which a test may break things: a disk that is full, a folder that cannot be written, a kill.
//
//   BRISK_EXPECT_CHILD_PASSES([&] {
//     mount_small_disk(folder.path(), "size=64k");      // only this process sees it
//     EXPECT_THROW(write(folder / "large"), UserError);
//   });
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "support/scratch_folder.h"

namespace brisk::test {

constexpr int kCannotTest = 77;

// Runs `body` in a process of its own; its exit status: 0 where all its expectations held.
inline int run_in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In a child: mounts a small file system that only this process sees.
inline void mount_small_disk(const std::string& path, const std::string& options) {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(kCannotTest);
    put_contents("/proc/self/setgroups", "deny");
    put_contents("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    put_contents("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("brisk", path.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    ::_exit(kCannotTest);
  }
}

inline void remount_read_only(const std::string& path) {
  if (::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) ::_exit(kCannotTest);
}

// In a child: permissions do not bind root, so it becomes nobody.
inline void lose_privileges() {
  if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(kCannotTest);
}

}  // namespace brisk::test

#define BRISK_EXPECT_CHILD_PASSES(...)                                                                   \
  do {                                                                                                   \
    const int status = ::brisk::test::run_in_child(__VA_ARGS__);                                         \
    if (status == ::brisk::test::kCannotTest) GTEST_SKIP() << "this system does not let a test do that"; \
    EXPECT_EQ(status, 0);                                                                                \
  } while (false)
