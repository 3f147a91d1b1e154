#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "comm/control.h"
#include "comm/control_link.h"

namespace brisk {

ControlListener::ControlListener(int port, const std::string& name, bool of_this_machine) : port_(port) {
  const int on = 1, off = 0;
  bool bound = false;
  if (!of_this_machine) socket_ = Socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  errno = 0;
  if (socket_.get() >= 0) {
    ::setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    bound = ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  if (!bound && errno != EADDRINUSE) {  // a machine without IPv6
    socket_ = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(of_this_machine ? INADDR_LOOPBACK : INADDR_ANY);
    address.sin_port = htons(static_cast<uint16_t>(port));
    bound = ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  if (!bound || ::listen(socket_.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    if (reason == EADDRINUSE)
      user_error("port {} ({}) is taken on {}, by another training or program: choose another port", port, name,
                 host_name());
    user_error("rank 0 cannot listen on port {} ({}) of {}: {}", port, name, host_name(), explain_errno(reason));
  }
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

namespace {

std::string control_variable(std::string_view name) { return std::string(Runtime::current().environment(name)); }

int control_port(std::string_view name, int otherwise) {
  const std::string text = control_variable(name);
  if (text.empty()) return otherwise;
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535)
    user_error("{} is \"{}\", expected a port from 1 to 65535", name, text);
  return port;
}

// Of this machine, as others may reach it, the loopback's at the end.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses, loopback;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {"127.0.0.1"};
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(each->ifa_addr)->sin6_addr))
      continue;
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), text.data(),
                      text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    ((each->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : addresses).emplace_back(text.data());
  }
  ::freeifaddrs(all);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

uint64_t random_key() {
  uint64_t key = 0;
  return ::getrandom(&key, sizeof(key), 0) == sizeof(key) ? key : static_cast<uint64_t>(::getpid());
}

}  // namespace

std::unique_ptr<Control> open_control(Communicator& ranks) {
  constexpr double kPatience = 30;
  const std::string name = "BRISK_CONTROL_PORT";
  ControlOptions options{
      .rank = ranks.rank(), .size = ranks.size(), .key = random_key(), .patience_seconds = kPatience};
  std::unique_ptr<ControlListener> listener;
  std::string problem;
  std::vector<std::string> place = {"", "", ""};
  const std::vector<std::string> places = ranks.gather(place_of_this_process());
  if (ranks.rank() == 0) {
    try {
      // On one machine nobody else can connect.
      const bool one = std::ranges::all_of(places, [&](const std::string& each) { return each == places[0]; });
      listener = std::make_unique<ControlListener>(control_port(name, 0), name, one);
      const std::string address = control_variable("BRISK_CONTROL_ADDRESS");
      const std::vector<std::string> addresses = one               ? std::vector<std::string>{"127.0.0.1"}
                                                 : address.empty() ? own_addresses()
                                                                   : std::vector<std::string>{address};
      place = {std::to_string(listener->port()), bytes_of(options.key), join_texts(addresses)};
    } catch (const UserError& error) {
      problem = error.what();
    }
  }
  const auto agree = [&] {
    for (const std::string& each : ranks.gather(problem)) {
      if (!each.empty()) throw UserError(each);
    }
  };
  agree();
  place = split_texts(ranks.gather(join_texts(place)).front());
  options.port = std::stoi(place[0]);
  options.key = value_of<uint64_t>(place[1]).value_or(0);
  options.addresses = split_texts(place[2]);
  options.name = "BRISK_CONTROL_PORT and BRISK_CONTROL_ADDRESS choose it";
  std::unique_ptr<Control> control;
  try {
    control = std::make_unique<Control>(std::move(options), std::move(listener));
  } catch (const UserError& error) {
    problem = ranks.rank() == 0
                  ? error.what()
                  : fmt::format("rank {} of {} on {}: {}", ranks.rank(), ranks.size(), host_name(), error.what());
  }
  agree();
  return control;
}

std::unique_ptr<Control> open_control(const World& world) {
  ControlOptions options{.rank = world.rank, .size = world.size};
  options.name = "MASTER_ADDR and MASTER_PORT";
  if (world.address.empty() || world.port < 1 || world.port > 65535) {
    user_error("WORLD_SIZE is {}, but {}: torchrun-style launchers set MASTER_ADDR and MASTER_PORT for all ranks",
               world.size,
               world.address.empty() ? "MASTER_ADDR is not set" : fmt::format("MASTER_PORT is {}", world.port));
  }
  // torchrun itself listens on MASTER_PORT while its ranks run.
  const bool store = control_variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  options.port = control_port("BRISK_CONTROL_PORT", store ? world.port + (world.port < 65535 ? 1 : -1) : world.port);
  options.key = hash_bytes(control_variable("TORCHELASTIC_RUN_ID"));
  options.addresses = {world.address};
  std::unique_ptr<ControlListener> listener;
  if (world.rank == 0) listener = std::make_unique<ControlListener>(options.port, options.name);
  return std::make_unique<Control>(std::move(options), std::move(listener));
}

}  // namespace brisk
