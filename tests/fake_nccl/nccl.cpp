// An NCCL of our own making, for tests of comm/nccl.h where there is no GPU: ranks are threads of one process, memory is the
// host's, and a call returns when it is done. Sums are taken from the last rank to the first, so that who relies on the order
// of the library's sum is found out. What ranks call must agree: the operation, its size, its root. BRISK_FAKE_NCCL_VERSION
// is the version it claims; a rank that aborts ends the calls of the others with an error, as NCCL's network does.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidUsage = 5, kRemoteError = 6;
constexpr int kInt8 = 0, kFloat32 = 7;

struct Id {
  char bytes[128];
};

struct Call {
  std::string what;  // that all ranks must agree on
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  int peer = 0;  // root, or the other rank
};

// What all ranks have in common.
struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, here = 0, turn = 0;
  bool aborted = false, differs = false;
  std::vector<Call> calls;                                            // of the ranks, at the current collective
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail;  // from, to

  bool meet(std::unique_lock<std::mutex>& lock) {
    const int own_turn = turn;
    if (++here == size) {
      here = 0;
      ++turn;
      changed.notify_all();
      return !aborted;
    }
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return turn != own_turn || aborted; });
    return turn != own_turn && !aborted;
  }
};

struct Comm {
  std::shared_ptr<Group> group;
  int rank = 0;
};

std::mutex groups_mutex;
std::map<std::string, std::shared_ptr<Group>> groups;

struct Queued {
  Comm* comm;
  int kind;  // 0 reduce, 1 broadcast, 2 all-gather, 3 send, 4 receive
  Call call;
};
thread_local int depth = 0;
thread_local std::vector<Queued> queued;

void compute(Group& group, int kind) {
  const std::vector<Call>& calls = group.calls;
  if (kind == 0) {
    const size_t count = calls[0].bytes / sizeof(float);
    std::vector<float> sums(count);
    for (size_t rank = calls.size(); rank-- > 0;) {
      for (size_t i = 0; i < count; ++i) sums[i] += static_cast<const float*>(calls[rank].from)[i];
    }
    std::memcpy(calls[static_cast<size_t>(calls[0].peer)].to, sums.data(), calls[0].bytes);
  } else if (kind == 1) {
    const void* from = calls[static_cast<size_t>(calls[0].peer)].from;
    for (const Call& call : calls) {
      if (call.to != from) std::memcpy(call.to, from, call.bytes);
    }
  } else {
    for (const Call& call : calls) {
      for (size_t rank = 0; rank < calls.size(); ++rank)
        std::memmove(static_cast<char*>(call.to) + rank * call.bytes, calls[rank].from, call.bytes);
    }
  }
}

int collective(const Queued& item) {
  Group& group = *item.comm->group;
  std::unique_lock lock(group.mutex);
  if (group.aborted) return kRemoteError;
  group.calls.resize(static_cast<size_t>(group.size));
  group.calls[static_cast<size_t>(item.comm->rank)] = item.call;
  if (!group.meet(lock)) return kRemoteError;
  if (item.comm->rank == 0) {
    for (const Call& call : group.calls) group.differs = group.differs || call.what != item.call.what;
    if (!group.differs) compute(group, item.kind);
  }
  if (!group.meet(lock)) return kRemoteError;
  return group.differs ? kInvalidUsage : kSuccess;
}

int send(const Queued& item) {
  Group& group = *item.comm->group;
  const std::lock_guard lock(group.mutex);
  const char* const from = static_cast<const char*>(item.call.from);
  group.mail[{item.comm->rank, item.call.peer}].emplace_back(from, from + item.call.bytes);
  group.changed.notify_all();
  return kSuccess;
}

int receive(const Queued& item) {
  Group& group = *item.comm->group;
  std::unique_lock lock(group.mutex);
  auto& box = group.mail[{item.call.peer, item.comm->rank}];
  group.changed.wait_for(lock, std::chrono::seconds(60), [&] { return !box.empty() || group.aborted; });
  if (box.empty()) return kRemoteError;
  const bool fits = box.front().size() == item.call.bytes;
  if (fits) std::memcpy(item.call.to, box.front().data(), item.call.bytes);
  box.pop_front();
  return fits ? kSuccess : kInvalidUsage;
}

int run_all() {
  std::vector<Queued> all;
  all.swap(queued);
  int result = kSuccess;
  const auto keep = [&](int status) { result = result == kSuccess ? status : result; };
  for (const Queued& item : all) {
    if (item.kind == 3) keep(send(item));
  }
  for (const Queued& item : all) {
    if (item.kind < 3) keep(collective(item));
    if (item.kind == 4) keep(receive(item));
  }
  return result;
}

int enqueue(void* comm, int kind, const char* name, const void* from, void* to, size_t count, int type, int peer) {
  const size_t bytes = count * (type == kFloat32 ? sizeof(float) : 1);
  if (type != kFloat32 && type != kInt8) return kInvalidUsage;
  Call call{.what = std::string(name) + " " + std::to_string(bytes) + " " + std::to_string(peer),
            .from = from,
            .to = to,
            .bytes = bytes,
            .peer = peer};
  queued.push_back({static_cast<Comm*>(comm), kind, std::move(call)});
  return depth > 0 ? kSuccess : run_all();
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  const char* claimed = std::getenv("BRISK_FAKE_NCCL_VERSION");
  *version = claimed != nullptr ? std::atoi(claimed) : 22809;
  return kSuccess;
}

int ncclGetUniqueId(Id* id) {
  static int next = 0;
  const std::lock_guard lock(groups_mutex);
  std::memset(id->bytes, 0, sizeof(id->bytes));
  std::snprintf(id->bytes, sizeof(id->bytes), "group %d", next++);
  return kSuccess;
}

int ncclCommInitRank(void** comm, int size, Id id, int rank) {
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(groups_mutex);
    auto& found = groups[id.bytes];
    if (!found) found = std::make_shared<Group>();
    found->size = size;
    group = found;
  }
  std::unique_lock lock(group->mutex);
  if (!group->meet(lock)) return kRemoteError;
  *comm = new Comm{group, rank};
  return kSuccess;
}

int ncclCommDestroy(void* comm) {
  delete static_cast<Comm*>(comm);
  return kSuccess;
}

int ncclCommAbort(void* comm) {
  auto* const own = static_cast<Comm*>(comm);
  {
    const std::lock_guard lock(own->group->mutex);
    own->group->aborted = true;
    own->group->changed.notify_all();
  }
  delete own;
  return kSuccess;
}

int ncclCommGetAsyncError(void* comm, int* error) {
  auto* const own = static_cast<Comm*>(comm);
  const std::lock_guard lock(own->group->mutex);
  *error = own->group->aborted ? kRemoteError : kSuccess;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited or there was a network error"
         : result == kSuccess   ? "no error"
                                : "invalid usage";
}

const char* ncclGetLastError(void*) { return ""; }

int ncclGroupStart() {
  ++depth;
  return kSuccess;
}

int ncclGroupEnd() { return --depth > 0 ? kSuccess : run_all(); }

int ncclReduce(const void* from, void* to, size_t count, int type, int, int root, void* comm, void*) {
  return enqueue(comm, 0, "reduce", from, to, count, type, root);
}
int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* comm, void*) {
  return enqueue(comm, 1, "broadcast", from, to, count, type, root);
}
int ncclAllGather(const void* from, void* to, size_t count, int type, void* comm, void*) {
  return enqueue(comm, 2, "all-gather", from, to, count, type, 0);
}
int ncclSend(const void* from, size_t count, int type, int peer, void* comm, void*) {
  return enqueue(comm, 3, "send", from, nullptr, count, type, peer);
}
int ncclRecv(void* to, size_t count, int type, int peer, void* comm, void*) {
  return enqueue(comm, 4, "receive", nullptr, to, count, type, peer);
}
}
