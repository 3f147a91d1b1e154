// A folder of its own for each test, gone afterwards, and what tests do with files and messages.
//
//   const ScratchFolder folder;
//   const std::string path = folder.write("a.json", "{");
//   EXPECT_TRUE(has(message_of<UserError>([&] { load(path); }), "a.json"));
#pragma once

#include <sys/stat.h>
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

  // The path of a file with these contents; folders on the way to it are made.
  std::string write(const std::string& name, const std::string& contents) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

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

}  // namespace brisk::test
