#include "comm/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/runtime.h"
#include "comm/socket.h"

namespace brisk {

namespace {

// What a rank says of itself, and what it hears, with the memory.
struct Greeting {
  int32_t rank = 0, size = 0;
};
struct Answer {
  std::array<char, 256> refusal{};  // empty: welcome
};

// No file has this name: it is gone with the socket.
struct Address {
  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t size = 0;
};

bool is_of_this_user(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

bool receive_greeting(int descriptor, Greeting& greeting) {
  constexpr double kPatience = 5;
  return wait_for(descriptor, POLLIN, in_seconds(kPatience)) &&
         ::recv(descriptor, &greeting, sizeof(greeting), MSG_WAITALL) == sizeof(greeting);
}

// Room for one descriptor beside a message.
union RoomForDescriptor {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> space;
};

bool send_answer(int descriptor, Answer& answer, int memory) {
  iovec piece{.iov_base = &answer, .iov_len = sizeof(answer)};
  RoomForDescriptor control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof(control.space);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &memory, sizeof(int));
  return ::sendmsg(descriptor, &message, MSG_NOSIGNAL) == sizeof(answer);
}

// -1: there was none.
int receive_answer(int descriptor, Answer& answer, SocketTime::time_point until) {
  if (!wait_for(descriptor, POLLIN, until)) return -1;
  iovec piece{.iov_base = &answer, .iov_len = sizeof(answer)};
  RoomForDescriptor control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof(control.space);
  if (::recvmsg(descriptor, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != sizeof(answer)) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int memory = -1;
  std::memcpy(&memory, CMSG_DATA(header), sizeof(int));
  return memory;
}

SharedSegment meet_as_first(const World& world, const Address& address, const std::string& meaning) {
  const Socket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener.get() < 0 || ::bind(listener.get(), address.get(), address.size) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    const bool taken = errno == EADDRINUSE;
    user_error("rank 0 cannot wait for the others: {}",
               taken ? "another training of this user was started with the same " + meaning + "; choose another"
                     : explain_errno(errno));
  }
  SharedSegment segment = SharedSegment::create(world.size);
  const SocketTime::time_point until = in_seconds(kMeetingSeconds);
  std::vector<bool> here(static_cast<size_t>(world.size), false);
  here[0] = true;
  for (int count = 1; count < world.size;) {
    if (!wait_for(listener.get(), POLLIN, until)) {
      std::string missing;
      for (size_t rank = 0; rank < here.size(); ++rank) missing += here[rank] ? "" : fmt::format(" {}", rank);
      user_error(
          "of {} ranks these did not come within {:.0f} s:{}; ranks of other machines cannot: between machines they need MPI",
          world.size, kMeetingSeconds, missing);
    }
    const Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Greeting greeting;
    if (socket.get() < 0 || !is_of_this_user(socket.get()) || !receive_greeting(socket.get(), greeting)) continue;
    Answer answer;
    const bool fits = greeting.size == world.size && greeting.rank > 0 && greeting.rank < world.size;
    if (!fits || here[static_cast<size_t>(greeting.rank)]) {
      const std::string refusal = fmt::format("rank {} of {} came where ranks 1 to {} of {} are expected, each once",
                                              greeting.rank, greeting.size, world.size - 1, world.size);
      refusal.copy(answer.refusal.data(), answer.refusal.size() - 1);
      send_answer(socket.get(), answer, segment.descriptor());
      user_error("{}", refusal);
    }
    if (!send_answer(socket.get(), answer, segment.descriptor()))
      user_error("rank {} went away while it started", greeting.rank);
    here[static_cast<size_t>(greeting.rank)] = true;
    ++count;
  }
  return segment;
}

SharedSegment meet_first(const World& world, const Address& address, const std::string& meaning) {
  const SocketTime::time_point until = in_seconds(kMeetingSeconds);
  while (SocketTime::now() < until) {
    throw_if_cancelled();
    const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0 || ::connect(socket.get(), address.get(), address.size) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    const Greeting greeting{.rank = world.rank, .size = world.size};
    Answer answer;
    int memory = -1;
    if (::send(socket.get(), &greeting, sizeof(greeting), MSG_NOSIGNAL) == sizeof(greeting))
      memory = receive_answer(socket.get(), answer, until);
    if (memory < 0) user_error("rank 0 ended before rank {} had started", world.rank);
    answer.refusal.back() = '\0';
    if (answer.refusal[0] != '\0') {
      ::close(memory);
      user_error("rank {}: {}", world.rank, answer.refusal.data());
    }
    return SharedSegment::inherited(memory);
  }
  user_error("rank 0 does not answer on this machine within {:.0f} s ({}): was it started, and on this machine?",
             kMeetingSeconds, meaning);
}

}  // namespace

SharedSegment meet(const World& world) {
  std::string meaning = "MASTER_ADDR and MASTER_PORT";
  std::string name = world.job;
  if (world.start == World::Start::slurm) {
    meaning = "Slurm job and step";
  } else {
    if (world.address.empty() || world.port < 1 || world.port > 65535) {
      user_error("WORLD_SIZE is {}, but {}: torchrun-style launchers set MASTER_ADDR and MASTER_PORT for all ranks",
                 world.size,
                 world.address.empty() ? "MASTER_ADDR is not set" : fmt::format("MASTER_PORT is {}", world.port));
    }
    name = fmt::format("{}:{}", world.address, world.port);
  }
  const Address address(fmt::format("brisk-{}-{:016x}", ::geteuid(), hash_bytes(name)));
  return world.rank == 0 ? meet_as_first(world, address, meaning) : meet_first(world, address, meaning);
}

}  // namespace brisk
