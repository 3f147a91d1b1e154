#include "comm/control_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/process.h"

namespace brisk {

namespace {

constexpr uint32_t kMostOfFrame = uint32_t{1} << 26;

struct FrameHead {
  Frame kind;
  uint32_t bytes;
};

}  // namespace

std::string join_texts(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += bytes_of(static_cast<uint32_t>(text.size())) + text;
  return all;
}
std::vector<std::string> split_texts(std::string_view all) {
  std::vector<std::string> texts;
  while (const auto size = value_of<uint32_t>(all)) {
    all.remove_prefix(sizeof(uint32_t));
    texts.emplace_back(all.substr(0, *size));
    all.remove_prefix(std::min<size_t>(*size, all.size()));
  }
  return texts;
}

Link::Link(Socket connected) : socket(std::move(connected)) {
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void Link::send(Frame kind, std::string_view content) {
  if (broken) return;
  out += bytes_of(FrameHead{kind, static_cast<uint32_t>(content.size())});
  out += content;
  flush();
}

void Link::flush() {
  while (!out.empty() && !broken) {
    const ssize_t sent = ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) broken = true;
    if (sent > 0) out.erase(0, static_cast<size_t>(sent));
  }
}

bool Link::receive() {
  std::array<char, 16384> piece;
  while (true) {
    const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      in.append(piece.data(), static_cast<size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    } else {
      return false;
    }
  }
}

std::optional<std::pair<Frame, std::string>> Link::take() {
  const auto head = value_of<FrameHead>(in);
  if (!head) return {};
  if (head->bytes > kMostOfFrame) {
    broken = true;
    in.clear();
    return {};
  }
  if (in.size() < sizeof(FrameHead) + head->bytes) return {};
  std::string content = in.substr(sizeof(FrameHead), head->bytes);
  in.erase(0, sizeof(FrameHead) + head->bytes);
  return std::pair(head->kind, std::move(content));
}

Addresses look_up(const std::string& host, int port, std::string& reason) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) reason = error == EAI_SYSTEM ? explain_errno(errno) : ::gai_strerror(error);
  return Addresses(error == 0 ? found : nullptr);
}

std::optional<Link> connect_to(const addrinfo& address, const std::string& hello, std::string& reason) {
  constexpr double kPatience = 2, kPatienceForAnswer = 5;
  Link link(Socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  const int socket = link.socket.get();
  if (socket < 0) {
    reason = explain_errno(errno);
    return {};
  }
  if (::connect(socket, address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) {
    reason = explain_errno(errno);
    return {};
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (!wait_for(socket, POLLOUT, in_seconds(kPatience))) {
    reason = "no answer";
    return {};
  }
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    reason = explain_errno(error != 0 ? error : errno);
    return {};
  }
  link.send(Frame::hello, hello);
  const SocketTime::time_point until = in_seconds(kPatienceForAnswer);
  while (wait_for(socket, POLLIN, until)) {
    const bool open = link.receive();
    if (const auto frame = link.take()) {
      if (frame->first == Frame::refused) user_error("{}", frame->second);
      if (frame->first == Frame::welcome && value_of<uint64_t>(frame->second) == kControlMark) return link;
      break;
    }
    if (!open) break;
  }
  reason = "whoever listens there is no rank 0 of brisk";
  return {};
}

std::string place_of_this_process() {
  struct stat status {};
  return fmt::format("{}/{}", boot_id(), ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0);
}

}  // namespace brisk
