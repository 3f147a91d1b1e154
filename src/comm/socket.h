// A socket that is closed when it goes, for the files here that talk to other ranks.
#pragma once

#include <unistd.h>

#include <chrono>
#include <utility>

namespace brisk {

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

using SocketTime = std::chrono::steady_clock;

inline SocketTime::time_point in_seconds(double seconds) {
  return SocketTime::now() + std::chrono::duration_cast<SocketTime::duration>(std::chrono::duration<double>(seconds));
}

// Until one of `events` (of poll) has happened; false where the time is over. Throws Cancelled where the runtime is.
bool wait_for(int descriptor, short events, SocketTime::time_point until);

}  // namespace brisk
