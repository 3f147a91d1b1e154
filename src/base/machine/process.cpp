#include "base/machine/process.h"

#include <fmt/format.h>
#include <signal.h>

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

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace brisk
