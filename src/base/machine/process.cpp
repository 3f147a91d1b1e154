#include "base/machine/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace brisk {

bool process_has_ended(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  if (!std::getline(file, stat)) return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
  // "4711 (brisk) S ...", where the name may be anything; Z and X are those that have ended.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  return stat[name_end + 2] == 'Z' || stat[name_end + 2] == 'X';
}

std::string name_of_process(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

uint64_t pid_namespace_of_this_process() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace brisk
