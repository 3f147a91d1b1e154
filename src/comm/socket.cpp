#include "comm/socket.h"

#include <poll.h>

#include "base/runtime.h"

namespace brisk {

bool wait_for(int descriptor, short events, SocketTime::time_point until) {
  while (SocketTime::now() < until) {
    throw_if_cancelled();
    pollfd poll{.fd = descriptor, .events = events, .revents = 0};
    if (::poll(&poll, 1, 200) > 0) return true;
  }
  return false;
}

}  // namespace brisk
