#include "cli/mapped_file_fault.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "cli/command.h"

namespace brisk {

namespace {

// What follows runs in a signal handler: no allocation, no locks, only calls that are safe there.

void say_in_handler(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// Escapes are not for the terminal.
void say_path_in_handler(std::string_view path) {
  for (const char& letter : path) {
    const bool control = static_cast<unsigned char>(letter) < ' ' || letter == '\x7f';
    say_in_handler(control ? std::string_view("?") : std::string_view(&letter, 1));
  }
}

uint64_t hex_number(std::string_view& text) {
  uint64_t value = 0;
  while (!text.empty()) {
    const char letter = text.front();
    const int digit = letter >= '0' && letter <= '9'   ? letter - '0'
                      : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                                                       : -1;
    if (digit < 0) return value;
    value = 16 * value + static_cast<uint64_t>(digit);
    text.remove_prefix(1);
  }
  return value;
}

// The path at the end of a line of /proc/self/maps, if the line is that of `address`: "begin-end rwxp offset dev inode path".
std::string_view path_if_mapped_at(std::string_view line, uint64_t address) {
  const uint64_t begin = hex_number(line);
  if (line.empty()) return {};
  line.remove_prefix(1);
  const uint64_t end = hex_number(line);
  const size_t path = line.find('/');
  return address >= begin && address < end && path != std::string_view::npos ? line.substr(path) : std::string_view();
}

// Line by line; a line longer than the buffer is not looked at.
bool say_file_mapped_at(uint64_t address) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return false;
  static char buffer[1 << 14];
  size_t filled = 0;
  bool found = false;
  for (ssize_t count = 0; !found && (count = ::read(maps, buffer + filled, sizeof(buffer) - filled)) > 0;) {
    filled += static_cast<size_t>(count);
    std::string_view lines(buffer, filled);
    for (size_t end = 0; !found && (end = lines.find('\n')) != std::string_view::npos; lines.remove_prefix(end + 1)) {
      const std::string_view path = path_if_mapped_at(lines.substr(0, end), address);
      found = !path.empty();
      if (found) say_path_in_handler(path);
    }
    std::memmove(buffer, lines.data(), lines.size());
    filled = lines.size() == sizeof(buffer) ? 0 : lines.size();
  }
  ::close(maps);
  return found;
}

void on_bus_error(int, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {  // not a page that is gone: a fault of the program, to be seen as such
    ::signal(SIGBUS, SIG_DFL);
    return;
  }
  say_in_handler("\nbrisk: ");
  if (!say_file_mapped_at(reinterpret_cast<uint64_t>(info->si_addr))) say_in_handler("a file that is being read");
  say_in_handler(
      ": another program cut it short while it was being read, or its disk failed; put it back, and run again when "
      "nothing writes to it (a training run: with --resume)\n");
  ::_exit(kExitUserError);
}

}  // namespace

void handle_mapped_file_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace brisk
