#include "comm/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/process.h"
#include "base/runtime.h"

namespace brisk {

namespace {

using Time = std::chrono::steady_clock;

Time::time_point deadline() {
  return Time::now() + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(kMeetingSeconds));
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
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

// What a rank says of itself, and what it hears.
struct Greeting {
  char mark[8] = {'b', 'r', 'i', 's', 'k', 'r', '0', '1'};
  int32_t rank = 0, size = 0;
  std::array<char, 64> machine{};  // its boot: the same for all processes of a machine
};
struct Answer {
  std::array<char, 64> segment{};  // empty: refused
  std::array<char, 256> reason{};
};

template <size_t Size>
void put(std::array<char, Size>& to, const std::string& text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), Size - 1));
}

bool wait_for(int descriptor, short events, Time::time_point until) {
  while (Time::now() < until) {
    throw_if_cancelled();
    pollfd poll{.fd = descriptor, .events = events, .revents = 0};
    if (::poll(&poll, 1, 200) > 0) return true;
  }
  return false;
}

bool transfer(int descriptor, void* data, size_t bytes, bool sends, Time::time_point until) {
  for (size_t done = 0; done < bytes;) {
    if (!wait_for(descriptor, sends ? POLLOUT : POLLIN, until)) return false;
    char* at = static_cast<char*>(data) + done;
    const ssize_t count =
        sends ? ::send(descriptor, at, bytes - done, MSG_NOSIGNAL) : ::recv(descriptor, at, bytes - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

Socket listen_at(int port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1, no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  if (socket.get() < 0 || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    user_error("MASTER_PORT {}: rank 0 cannot listen there: {}; choose another port", port, explain_errno(errno));
  }
  return socket;
}

Socket connect_to(const std::string& host, int port, Time::time_point until) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) user_error("MASTER_ADDR {}: {}", host, ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  while (Time::now() < until) {
    throw_if_cancelled();
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
      Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket.get() >= 0 && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0) return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  user_error("rank 0 does not answer at {}:{} (MASTER_ADDR, MASTER_PORT) within {:.0f} s: was it started?", host, port,
             kMeetingSeconds);
}

std::string new_name() {
  std::random_device random;
  return fmt::format("/brisk-{}-{:08x}{:08x}", ::getpid(), random(), random());
}

SharedSegment meet_as_first(const World& world) {
  const Socket listener = listen_at(world.port);
  const std::string name = new_name(), machine = boot_id();
  SharedSegment segment = SharedSegment::create_named(name, world.size);
  struct Forget {
    const std::string& name;
    ~Forget() { SharedSegment::forget_name(name); }
  } const forget{name};
  const Time::time_point until = deadline();
  std::vector<Socket> others;
  std::vector<bool> here(static_cast<size_t>(world.size), false);
  here[0] = true;
  while (std::ssize(others) + 1 < world.size) {
    if (!wait_for(listener.get(), POLLIN, until)) {
      std::string missing;
      for (size_t rank = 0; rank < here.size(); ++rank) missing += here[rank] ? "" : fmt::format(" {}", rank);
      user_error("of {} ranks these did not come to port {} within {:.0f} s:{}", world.size, world.port,
                 kMeetingSeconds, missing);
    }
    Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Greeting greeting;
    // Somebody else's connection, such as a scan of ports, is let go.
    constexpr auto kPatience = std::chrono::seconds(5);
    if (socket.get() < 0 || !transfer(socket.get(), &greeting, sizeof(greeting), false, Time::now() + kPatience))
      continue;
    if (std::memcmp(greeting.mark, Greeting().mark, sizeof(greeting.mark)) != 0) continue;
    greeting.machine.back() = '\0';
    Answer answer;
    const bool known = greeting.rank > 0 && greeting.rank < world.size && greeting.size == world.size;
    if (!known || here[static_cast<size_t>(greeting.rank)]) {
      put(answer.reason, fmt::format("rank 0 expects ranks 1 to {} of {}, each once; this is rank {} of {}",
                                     world.size - 1, world.size, greeting.rank, greeting.size));
    } else if (machine != greeting.machine.data()) {
      put(answer.reason,
          "it is on another machine than rank 0: between machines, ranks that train on CPUs need MPI; start them with mpirun");
    } else {
      put(answer.segment, name);
      here[static_cast<size_t>(greeting.rank)] = true;
    }
    const bool sent = transfer(socket.get(), &answer, sizeof(answer), true, until);
    if (answer.reason[0] != '\0') user_error("rank {}: {}", greeting.rank, answer.reason.data());
    if (!sent) user_error("rank {} went away while it started", greeting.rank);
    others.push_back(std::move(socket));
  }
  // The name may go when all have opened what it names.
  for (Socket& socket : others) {
    char opened = 0;
    if (!transfer(socket.get(), &opened, 1, false, until)) user_error("a rank went away while it started");
  }
  return segment;
}

SharedSegment meet_first(const World& world) {
  const Time::time_point until = deadline();
  const Socket socket = connect_to(world.address, world.port, until);
  Greeting greeting;
  greeting.rank = world.rank;
  greeting.size = world.size;
  put(greeting.machine, boot_id());
  Answer answer;
  if (!transfer(socket.get(), &greeting, sizeof(greeting), true, until) ||
      !transfer(socket.get(), &answer, sizeof(answer), false, until)) {
    user_error("rank 0 at {}:{} ended before rank {} had started", world.address, world.port, world.rank);
  }
  answer.reason.back() = answer.segment.back() = '\0';
  if (answer.segment[0] == '\0') user_error("rank {}: {}", world.rank, answer.reason.data());
  SharedSegment segment = SharedSegment::open_named(answer.segment.data());
  char opened = 1;
  transfer(socket.get(), &opened, 1, true, until);
  return segment;
}

}  // namespace

SharedSegment meet(const World& given) {
  World world = given;
  if (world.start == World::Start::slurm) {
    // All ranks are here; a port that follows from the job, above those that systems give away.
    world.address = "localhost";
    world.port = 20000 + static_cast<int>(std::hash<std::string>{}(world.job) % 12000);
  }
  if (world.address.empty() || world.port < 1 || world.port > 65535) {
    user_error("WORLD_SIZE is {}, but {}: torchrun-style launchers set MASTER_ADDR and MASTER_PORT for all ranks",
               world.size,
               world.address.empty() ? "MASTER_ADDR is not set" : fmt::format("MASTER_PORT is {}", world.port));
  }
  return world.rank == 0 ? meet_as_first(world) : meet_first(world);
}

}  // namespace brisk
