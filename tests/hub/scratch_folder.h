// A folder of its own for each test, and processes in which a test may break things: a disk that is full, a folder that
// cannot be written, a kill.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace brisk::test {

class ScratchFolder {
 public:
  ScratchFolder() {
    // In memory where that is possible: a busy disk takes 20 ms for each of hundreds of flushes.
    const bool memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK | X_OK) == 0;
    std::string pattern =
        (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/brisk-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    ::chmod(path_.c_str(), 0755);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As a new file: ext4 flushes one that was emptied and written again to the disk, 10 ms each.
inline void put_contents(const std::string& path, const std::string& contents) {
  ::unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << contents;
}

// What `action` complains of; "" where it does not complain.
template <typename Error>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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
