#include "comm/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "base/sum_tree.h"
#include "base/threads.h"
#include "comm/control.h"
#include "comm/ranges.h"

namespace brisk {

namespace {

// A handle (MPI_Comm, MPI_Datatype) as an argument: Open MPI's are pointers, MPICH's are ints in the same register.
using Handle = intptr_t;

struct Library {
  void* handle = nullptr;
  Handle world = 0, type_byte = 0, type_float = 0;

  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*abort)(Handle, int) = nullptr;
  int (*rank)(Handle, int*) = nullptr;
  int (*size)(Handle, int*) = nullptr;
  int (*barrier)(Handle) = nullptr;
  int (*all_gather)(const void*, int, Handle, void*, int, Handle, Handle) = nullptr;
  int (*all_gather_v)(const void*, int, Handle, void*, const int*, const int*, Handle, Handle) = nullptr;
  int (*gather_v)(const void*, int, Handle, void*, const int*, const int*, Handle, int, Handle) = nullptr;
  int (*all_to_all_v)(const void*, const int*, const int*, Handle, void*, const int*, const int*, Handle,
                      Handle) = nullptr;
  int (*begin_all_to_all_v)(const void*, const int*, const int*, Handle, void*, const int*, const int*, Handle, Handle,
                            Handle*) = nullptr;
  int (*test)(Handle*, int*, void*) = nullptr;
  int (*library_version)(char*, int*) = nullptr;
};

template <typename Function>
void find(const Library& library, const char* name, Function*& function, const std::string& path) {
  function = reinterpret_cast<Function*>(::dlsym(library.handle, name));
  if (function == nullptr) user_error("{}: it has no {}: it is no MPI library", path, name);
}

// Open MPI's constants are objects of the library; MPICH's are numbers that its binary interface promises.
void find_constants(Library& library) {
  void* const world = ::dlsym(library.handle, "ompi_mpi_comm_world");
  if (world != nullptr) {
    library.world = reinterpret_cast<Handle>(world);
    library.type_byte = reinterpret_cast<Handle>(::dlsym(library.handle, "ompi_mpi_byte"));
    library.type_float = reinterpret_cast<Handle>(::dlsym(library.handle, "ompi_mpi_float"));
    return;
  }
  library.world = 0x44000000;
  library.type_byte = 0x4c00010d;
  library.type_float = 0x4c00040a;
}

Library load(const World& world) {
  std::vector<std::string> names;
  const std::string_view chosen = Runtime::current().environment("BRISK_MPI_LIBRARY");
  if (!chosen.empty()) {
    names = {std::string(chosen)};
  } else if (world.start == World::Start::mpich) {
    names = {"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0"};
  } else {
    names = {"libmpi.so.40", "libmpi.so"};
  }
  Library library;
  std::string path, reasons;
  for (const std::string& name : names) {
    // Its own plug-ins look for its symbols.
    library.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    path = name;
    if (library.handle != nullptr) break;
    const char* reason = ::dlerror();
    reasons += fmt::format("\n  {}", reason != nullptr ? reason : name);
  }
  if (library.handle == nullptr) {
    user_error(
        "brisk was started by {} ({} ranks), but its library cannot be loaded:{}\ninstall it on this machine, name it in "
        "BRISK_MPI_LIBRARY, or start with brisk launch -n {} on one machine",
        world.started_by(), world.size, reasons, world.size);
  }
  find_constants(library);
  find(library, "MPI_Init_thread", library.init_thread, path);
  find(library, "MPI_Finalize", library.finalize, path);
  find(library, "MPI_Abort", library.abort, path);
  find(library, "MPI_Comm_rank", library.rank, path);
  find(library, "MPI_Comm_size", library.size, path);
  find(library, "MPI_Barrier", library.barrier, path);
  find(library, "MPI_Allgather", library.all_gather, path);
  find(library, "MPI_Allgatherv", library.all_gather_v, path);
  find(library, "MPI_Gatherv", library.gather_v, path);
  find(library, "MPI_Alltoallv", library.all_to_all_v, path);
  find(library, "MPI_Ialltoallv", library.begin_all_to_all_v, path);
  find(library, "MPI_Test", library.test, path);
  find(library, "MPI_Get_library_version", library.library_version, path);
  return library;
}

// "Open MPI v4.1.4": what comes before the first comma or line end.
std::string version_of(const Library& library) {
  std::array<char, 8192> text{};
  int length = 0;
  library.library_version(text.data(), &length);
  std::string version(text.data(), static_cast<size_t>(std::clamp<int>(length, 0, static_cast<int>(text.size()))));
  version = version.substr(0, std::min(version.find_first_of(",\n"), version.find('\0')));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

class Mpi final : public Communicator {
 public:
  Mpi(const Library& library, int rank, int size, bool serves_any_thread)
      : Communicator(rank, size),
        library_(library),
        transport_(version_of(library)),
        serves_any_thread_(serves_any_thread) {}
  ~Mpi() override {
    if (!failed_) library_.finalize();
  }

  std::string transport() const override { return transport_; }
  bool serves_any_thread() const override { return serves_any_thread_; }
  int64_t background_bytes() const override { return serves_any_thread_ ? kBackgroundBytes : 0; }

  void connect_control() { control_ = open_control(*this); }
  void at_step(int64_t step) override { control_->at_step(step); }

  void do_barrier() override { check(library_.barrier(library_.world)); }

  void do_all_gather(const void* own, void* all, int64_t bytes) override {
    BRISK_CHECK(bytes <= kMostBytes, "{} bytes at once", bytes);
    const int count = static_cast<int>(bytes);
    check(library_.all_gather(own, count, library_.type_byte, all, count, library_.type_byte, library_.world));
  }

  // Each rank gets the others' floats of its range and adds them itself: the library's order of sums is its own affair.
  void do_sum_ranges(float* data, std::span<const int64_t> bounds) override {
    const auto ranks = static_cast<size_t>(size());
    const int64_t piece = kMostFloats / size();
    std::vector<int> send_counts(ranks), send_places(ranks), receive_counts(ranks), receive_places(ranks);
    for (int64_t begin = 0; begin < longest_range(bounds); begin += piece) {
      // What goes out lies side by side, so that places are small numbers.
      outgoing_.clear();
      for (size_t other = 0; other < ranks; ++other) {
        const auto [from, count] = piece_of(bounds, static_cast<int>(other), begin, piece);
        send_counts[other] = static_cast<int>(count);
        send_places[other] = static_cast<int>(outgoing_.size());
        outgoing_.insert(outgoing_.end(), data + from, data + from + count);
      }
      const auto [to, own] = piece_of(bounds, rank(), begin, piece);
      for (size_t other = 0; other < ranks; ++other) {
        receive_counts[other] = static_cast<int>(own);
        receive_places[other] = static_cast<int>(static_cast<int64_t>(other) * own);
      }
      incoming_.resize(ranks * static_cast<size_t>(own));
      all_to_all(send_counts, send_places, receive_counts, receive_places);
      if (own == 0) continue;
      thread_pool().for_range(own, kGrain, [&, own = own, to = to](int64_t first, int64_t last, int) {
        sum_tree(size(), [&](int64_t i, int64_t j) {
          float* sum = incoming_.data() + i * own;
          const float* part = incoming_.data() + j * own;
          for (int64_t k = first; k < last; ++k) sum[k] += part[k];
        });
        std::copy(incoming_.data() + first, incoming_.data() + last, data + to + first);
      });
    }
  }

  void do_share_ranges(void* data, std::span<const int64_t> bounds) override {
    pass_ranges(bounds,
                [&](const std::vector<int>& counts, const std::vector<int>& places, int64_t from, int64_t begin) {
                  // The ranges lie far apart: the window that moves over them is a buffer of its own.
                  auto* bytes = static_cast<char*>(data);
                  buffer_.resize(static_cast<size_t>(places.back() + counts.back()));
                  const auto own = static_cast<size_t>(rank());
                  check(library_.all_gather_v(bytes + from, counts[own], library_.type_byte, buffer_.data(),
                                              counts.data(), places.data(), library_.type_byte, library_.world));
                  take_out(bytes, bounds, counts, places, begin);
                });
  }

  void do_collect_ranges(void* data, std::span<const int64_t> bounds, int root) override {
    pass_ranges(bounds,
                [&](const std::vector<int>& counts, const std::vector<int>& places, int64_t from, int64_t begin) {
                  auto* bytes = static_cast<char*>(data);
                  if (rank() == root) buffer_.resize(static_cast<size_t>(places.back() + counts.back()));
                  const auto own = static_cast<size_t>(rank());
                  check(library_.gather_v(bytes + from, counts[own], library_.type_byte, buffer_.data(), counts.data(),
                                          places.data(), library_.type_byte, root, library_.world));
                  if (rank() == root) take_out(bytes, bounds, counts, places, begin);
                });
  }

  // Rank 0 knows the reason, and tells it where it has none of its own; without it the launcher ends the others, and this
  // process at once.
  void fail(const std::string& reason) noexcept override {
    if (std::exchange(failed_, true)) return;
    if (control_ && control_->fail(reason)) return;
    constexpr unsigned kSecondsForTheFirst = 3;
    if (rank() > 0) ::sleep(kSecondsForTheFirst);
    const std::string line =
        rank() > 0 ? fmt::format("brisk: rank {}: {}\n", rank(), reason) : "brisk: " + reason + "\n";
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
    library_.abort(library_.world, kExitOfFailedRank);
  }

 private:
  static constexpr int64_t kBackgroundBytes = int64_t{4} << 20;
  static constexpr int64_t kMostBytes = int64_t{1} << 30, kMostFloats = int64_t{1} << 22, kGrain = 4096;
  // Of a rank; those of all are in one buffer, whose places are ints.
  int64_t window_bytes() const { return std::max<int64_t>(int64_t{1} << 16, (int64_t{1} << 26) / size()); }
  static constexpr int kExitOfFailedRank = 2;

  void check(int result) const {
    if (result == 0) return;
    user_error("MPI ({}): a call failed with error {} on rank {}: another rank or its network is gone", transport_,
               result, rank());
  }

  // Of outgoing_ into incoming_.
  void all_to_all(const std::vector<int>& send_counts, const std::vector<int>& send_places,
                  const std::vector<int>& receive_counts, const std::vector<int>& receive_places) {
    if (!BackgroundCollectives::on_this_thread()) {
      return check(library_.all_to_all_v(outgoing_.data(), send_counts.data(), send_places.data(), library_.type_float,
                                         incoming_.data(), receive_counts.data(), receive_places.data(),
                                         library_.type_float, library_.world));
    }
    Handle request = 0;
    check(library_.begin_all_to_all_v(outgoing_.data(), send_counts.data(), send_places.data(), library_.type_float,
                                      incoming_.data(), receive_counts.data(), receive_places.data(),
                                      library_.type_float, library_.world, &request));
    // The libraries look for messages in a loop that takes a whole core.
    constexpr int kLooks = 20;
    constexpr timespec kNap{0, 20'000};
    std::array<std::byte, 256> status{};  // of a library's own kind, smaller than this
    for (int done = 0, looks = 0; done == 0; ++looks) {
      if (looks >= kLooks) ::nanosleep(&kNap, nullptr);
      check(library_.test(&request, &done, status.data()));
    }
  }

  template <typename Pass>
  void pass_ranges(std::span<const int64_t> bounds, const Pass& pass) {
    const auto ranks = static_cast<size_t>(size());
    std::vector<int> counts(ranks), places(ranks);
    for (int64_t begin = 0; begin < longest_range(bounds); begin += window_bytes()) {
      int place = 0;
      for (size_t other = 0; other < ranks; ++other) {
        places[other] = place;
        counts[other] = static_cast<int>(piece_of(bounds, static_cast<int>(other), begin, window_bytes()).count);
        place += counts[other];
      }
      pass(counts, places, piece_of(bounds, rank(), begin, window_bytes()).begin, begin);
    }
  }

  void take_out(char* bytes, std::span<const int64_t> bounds, const std::vector<int>& counts,
                const std::vector<int>& places, int64_t begin) {
    for (size_t other = 0; other < counts.size(); ++other) {
      if (static_cast<int>(other) == rank() || counts[other] == 0) continue;
      std::memcpy(bytes + bounds[other] + begin, buffer_.data() + places[other], static_cast<size_t>(counts[other]));
    }
  }

  Library library_;
  std::string transport_;
  bool serves_any_thread_;
  bool failed_ = false;
  std::unique_ptr<Control> control_;  // last of all: it watches whoever still ends
  std::vector<float> outgoing_, incoming_;
  std::vector<char> buffer_;
};

}  // namespace

std::unique_ptr<Communicator> open_mpi(const World& world) {
  const Library library = load(world);
  constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED: one thread at a time calls it
  int provided = 0;
  if (library.init_thread(nullptr, nullptr, kSerialized, &provided) != 0)
    user_error("MPI ({}) cannot start", version_of(library));
  int rank = 0, size = 0;
  library.rank(library.world, &rank);
  library.size(library.world, &size);
  if (rank != world.rank || size != world.size) {
    const std::string version = version_of(library);
    library.finalize();
    user_error(
        "{} started {} ranks, but MPI ({}) sees {}: the launcher and the library are not of the same MPI; with Slurm start "
        "with srun --mpi=pmix, or name the library in BRISK_MPI_LIBRARY",
        world.started_by(), world.size, version, size == 1 ? std::string("each of them alone") : std::to_string(size));
  }
  auto ranks = std::make_unique<Mpi>(library, rank, size, provided >= kSerialized);
  ranks->connect_control();
  return ranks;
}

}  // namespace brisk
