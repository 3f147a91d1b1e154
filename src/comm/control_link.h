// What travels on a control connection (control.h): frames of a kind and some bytes.
//
//   std::optional<Link> link = connect_to(address, hello, reason);
//   link->send(Frame::beat, bytes_of(step));
//   while (const auto frame = link->take()) ...
#pragma once

#include <netdb.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/socket.h"

namespace brisk {

constexpr uint64_t kControlMark = 0x62726973'6B637431;  // "briskct1"

enum class Frame : uint32_t {
  hello = 1,  // of a rank that has connected: Hello, its host and its place
  refused,    // why it is not of this job, or why the job does not start
  welcome,    // the mark
  begin,      // all ranks are there: hosts and places
  beat,       // a heartbeat: the last step
  failed,     // to rank 0: why this rank ends
  end,        // to the others: why the job ends; behind a '!', because of a rank that is gone
  bye,
};

struct Hello {
  uint64_t mark = kControlMark, key = 0;
  int32_t rank = 0, size = 0;
};

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
template <typename T>
std::optional<T> value_of(std::string_view bytes) {
  T value{};
  if (bytes.size() < sizeof(T)) return {};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::string join_texts(const std::vector<std::string>& texts);
std::vector<std::string> split_texts(std::string_view all);

// To one rank. Nothing here waits: what a full connection does not take goes out later.
struct Link {
  explicit Link(Socket connected);

  void send(Frame kind, std::string_view content = {});
  void flush();
  bool receive();  // false where the other side is gone; what it sent before can still be taken
  std::optional<std::pair<Frame, std::string>> take();

  Socket socket;
  int rank = -1;  // not known yet
  std::string in, out;
  SocketTime::time_point heard = SocketTime::now(), since = heard;
  int64_t step = 0;
  bool broken = false, closed = false;
  bool left = false;  // it ended as it should
};

struct FreeAddresses {
  void operator()(addrinfo* all) const { ::freeaddrinfo(all); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;
// Null where the name has none, with the reason.
Addresses look_up(const std::string& host, int port, std::string& reason);

// To rank 0, when it has welcomed this rank; else why it cannot be asked. UserError where it refuses.
std::optional<Link> connect_to(const addrinfo& address, const std::string& hello, std::string& reason);

// The machine of this process, and the network that it sees there.
std::string place_of_this_process();

}  // namespace brisk
