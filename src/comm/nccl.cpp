#include "comm/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "comm/ranges.h"

namespace brisk {

namespace {

// As NCCL declares them (nccl.h); the numbers and layouts are part of its binary interface.
using NcclResult = int;
using NcclComm = void*;
constexpr NcclResult kNcclSuccess = 0, kNcclInProgress = 7;
constexpr int kNcclInt8 = 0, kNcclFloat32 = 7, kNcclSum = 0;
struct NcclId {
  std::array<char, 128> bytes;
};

constexpr const char* kNcclName = "libnccl.so.2";
// Send and receive came with 2.7; what was queued in a group with them could hang before 2.10.
constexpr int kOldestNccl = 21003;

struct NcclLibrary {
  void* handle = nullptr;
  int version = 0;
  NcclResult (*get_version)(int*) = nullptr;
  NcclResult (*get_id)(NcclId*) = nullptr;
  NcclResult (*init)(NcclComm*, int, NcclId, int) = nullptr;
  NcclResult (*destroy)(NcclComm) = nullptr;
  NcclResult (*abort)(NcclComm) = nullptr;
  NcclResult (*async_error)(NcclComm, NcclResult*) = nullptr;
  const char* (*error_string)(NcclResult) = nullptr;
  const char* (*last_error)(NcclComm) = nullptr;  // since 2.13; else null
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*reduce)(const void*, void*, size_t, int, int, int, NcclComm, void*) = nullptr;
  NcclResult (*broadcast)(const void*, void*, size_t, int, int, NcclComm, void*) = nullptr;
  NcclResult (*all_gather)(const void*, void*, size_t, int, NcclComm, void*) = nullptr;
  NcclResult (*send)(const void*, size_t, int, int, NcclComm, void*) = nullptr;
  NcclResult (*receive)(void*, size_t, int, int, NcclComm, void*) = nullptr;
};

// 22809 is 2.28.9; before 2.9, 2804 was 2.8.4.
std::string nccl_version_text(int code) {
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

// Why it cannot be used; empty: it can.
std::string load_nccl(NcclLibrary& library) {
  const std::string_view chosen = Runtime::current().environment("BRISK_NCCL_LIBRARY");
  const std::string name(chosen.empty() ? kNcclName : chosen);
  library.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) {
    const char* reason = ::dlerror();
    return fmt::format(
        "NCCL, which connects the GPUs, cannot be loaded ({}); install it (NVIDIA's package libnccl2, or pip's nvidia-nccl, "
        "whose libnccl.so.2 BRISK_NCCL_LIBRARY can name), or train on CPUs (\"device\": \"cpu\")",
        reason != nullptr ? reason : name);
  }
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library.handle, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find("ncclGetVersion", library.get_version);
  if (library.get_version == nullptr) return fmt::format("{} is no NCCL: it has no ncclGetVersion", name);
  if (library.get_version(&library.version) != kNcclSuccess) return fmt::format("{} does not tell its version", name);
  if (library.version < kOldestNccl) {
    return fmt::format("{} is NCCL {}; {} or newer is needed", name, nccl_version_text(library.version),
                       nccl_version_text(kOldestNccl));
  }
  find("ncclGetUniqueId", library.get_id);
  find("ncclCommInitRank", library.init);
  find("ncclCommDestroy", library.destroy);
  find("ncclCommAbort", library.abort);
  find("ncclCommGetAsyncError", library.async_error);
  find("ncclGetErrorString", library.error_string);
  find("ncclGroupStart", library.group_start);
  find("ncclGroupEnd", library.group_end);
  find("ncclReduce", library.reduce);
  find("ncclBroadcast", library.broadcast);
  find("ncclAllGather", library.all_gather);
  find("ncclSend", library.send);
  find("ncclRecv", library.receive);
  if (!missing.empty()) return fmt::format("{} is no NCCL that brisk knows: it has no {}", name, missing);
  find("ncclGetLastError", library.last_error);
  return "";
}

class LoadedNccl final : public Nccl {
 public:
  LoadedNccl(Communicator& ranks, const NcclLibrary& library, const NcclId& id) : ranks_(ranks), library_(library) {
    const NcclResult connected = library_.init(&comm_, size(), id, rank());
    if (connected != kNcclSuccess) wait_for_reason();
    require(connected, "connecting the GPUs");
  }
  ~LoadedNccl() override {
    if (comm_ != nullptr) library_.destroy(comm_);
  }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::string version() const override { return "NCCL " + nccl_version_text(library_.version); }

  void reduce_to_owners(float* data, int64_t begin, int64_t end, std::span<const int64_t> bounds,
                        Stream stream) override {
    as_one("summing gradients", [&] {
      for (int owner = 0; owner < size(); ++owner) {
        const int64_t from = std::max(begin, bounds[static_cast<size_t>(owner)]);
        const int64_t to = std::min(end, bounds[static_cast<size_t>(owner) + 1]);
        if (from >= to) continue;
        queued(library_.reduce(data + from, data + from, static_cast<size_t>(to - from), kNcclFloat32, kNcclSum, owner,
                               comm_, stream));
      }
    });
  }

  void exchange_ranges(const float* data, std::span<const int64_t> bounds, int64_t offset, int64_t most, float* parts,
                       Stream stream) override {
    const int64_t own = piece_of(bounds, rank(), offset, most).count;
    as_one("exchanging gradients", [&] {
      for (int other = 0; other < size(); ++other) {
        const auto [from, count] = piece_of(bounds, other, offset, most);
        if (count > 0)
          queued(library_.send(data + from, static_cast<size_t>(count), kNcclFloat32, other, comm_, stream));
        if (own > 0) {
          queued(library_.receive(parts + other * own, static_cast<size_t>(own), kNcclFloat32, other, comm_, stream));
        }
      }
    });
  }

  void share_ranges(void* data, std::span<const int64_t> bounds, Stream stream) override {
    as_one("sharing weights", [&] {
      for (int owner = 0; owner < size(); ++owner) {
        const auto [from, count] = piece_of(bounds, owner, 0, INT64_MAX);
        char* const range = static_cast<char*>(data) + from;
        if (count > 0)
          queued(library_.broadcast(range, range, static_cast<size_t>(count), kNcclInt8, owner, comm_, stream));
      }
    });
  }

  void collect_ranges(void* data, std::span<const int64_t> bounds, int root, Stream stream) override {
    as_one("collecting from the GPUs", [&] {
      for (int owner = 0; owner < size(); ++owner) {
        const auto [from, count] = piece_of(bounds, owner, 0, INT64_MAX);
        if (count <= 0 || owner == root) continue;
        char* const range = static_cast<char*>(data) + from;
        if (rank() == owner) queued(library_.send(range, static_cast<size_t>(count), kNcclInt8, root, comm_, stream));
        if (rank() == root)
          queued(library_.receive(range, static_cast<size_t>(count), kNcclInt8, owner, comm_, stream));
      }
    });
  }

  void all_gather(const void* own, void* all, int64_t bytes, Stream stream) override {
    as_one("gathering numbers",
           [&] { queued(library_.all_gather(own, all, static_cast<size_t>(bytes), kNcclInt8, comm_, stream)); });
  }

  void check() override {
    if (comm_ == nullptr) throw RankFailed(why_aborted_);
    try {
      ranks_.throw_if_rank_failed();
      NcclResult error = kNcclSuccess;
      require(library_.async_error(comm_, &error), "asking NCCL how it is");
      if (error != kNcclSuccess && error != kNcclInProgress) {
        wait_for_reason();
        require(error, "while the GPUs exchanged data");
      }
    } catch (const std::exception& error) {
      why_aborted_ = error.what();
      abort();
      throw;
    }
  }

  void abort() noexcept override {
    if (comm_ == nullptr) return;
    NcclComm const comm = comm_;
    comm_ = nullptr;
    library_.abort(comm);
  }

 private:
  // A rank that ends gives up its connection, and tells the others why by another way: that may come a moment later.
  void wait_for_reason() {
    constexpr int kMostWaits = 100;
    for (int wait = 0; wait < kMostWaits; ++wait) {
      ranks_.throw_if_rank_failed();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  void require(NcclResult result, const char* what) const {
    if (result == kNcclSuccess || result == kNcclInProgress) return;
    const char* const more = library_.last_error != nullptr && comm_ != nullptr ? library_.last_error(comm_) : nullptr;
    throw RankFailed(fmt::format("{} on rank {}: {}: {}{}{}; NCCL_DEBUG=INFO makes NCCL say more", version(), rank(),
                                 what, library_.error_string(result), more != nullptr && *more != '\0' ? ": " : "",
                                 more != nullptr ? more : ""));
  }
  void queued(NcclResult result) {
    if (first_error_ == kNcclSuccess) first_error_ = result;
  }

  // Queued as one operation; with one rank, or nothing to do, an empty one.
  template <typename Work>
  void as_one(const char* what, const Work& work) {
    if (comm_ == nullptr) throw RankFailed(why_aborted_);
    first_error_ = kNcclSuccess;
    require(library_.group_start(), what);
    work();
    const NcclResult ended = library_.group_end();
    if (first_error_ == kNcclSuccess) first_error_ = ended;
    if (first_error_ == kNcclSuccess || first_error_ == kNcclInProgress) return;
    wait_for_reason();
    require(first_error_, what);
  }

  Communicator& ranks_;
  NcclLibrary library_;
  NcclComm comm_ = nullptr;
  NcclResult first_error_ = kNcclSuccess;  // of the group
  std::string why_aborted_ = "the connection between the GPUs was given up";
};

}  // namespace

std::unique_ptr<Nccl> open_nccl(Communicator& ranks) {
  NcclLibrary library;
  const std::vector<std::string> errors = ranks.gather(load_nccl(library));
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (!errors[rank].empty()) user_error("rank {}: {}", rank, errors[rank]);
  }
  const std::vector<double> versions = ranks.gather(static_cast<double>(library.version));
  for (size_t rank = 1; rank < versions.size(); ++rank) {
    if (versions[rank] == versions[0]) continue;
    user_error("rank {} has NCCL {}, rank 0 has {}: install the same on all machines, or name it in BRISK_NCCL_LIBRARY",
               rank, nccl_version_text(static_cast<int>(versions[rank])),
               nccl_version_text(static_cast<int>(versions[0])));
  }
  NcclId id{};
  NcclResult made = kNcclSuccess;
  if (ranks.rank() == 0) made = library.get_id(&id);
  if (const auto status = static_cast<NcclResult>(ranks.first(made)); status != kNcclSuccess) {
    user_error(
        "NCCL {} cannot start on rank 0: {}; NCCL_SOCKET_IFNAME names the network it should use, NCCL_DEBUG=INFO "
        "makes it say more",
        nccl_version_text(library.version), library.error_string(status));
  }
  std::vector<NcclId> ids(static_cast<size_t>(ranks.size()));
  ranks.all_gather(&id, ids.data(), sizeof(NcclId));
  return std::make_unique<LoadedNccl>(ranks, library, ids.front());
}

}  // namespace brisk
