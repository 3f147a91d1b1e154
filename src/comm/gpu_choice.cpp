#include "comm/gpu_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

constexpr char kBetweenFields = '\n';

bool see_the_same(const GpuPlace& a, const GpuPlace& b) { return a.machine == b.machine && a.gpus == b.gpus; }

// Its place among the ranks that choose from the same GPUs: what the launcher says where that names one for each, else
// their order.
int place_among_peers(std::span<const GpuPlace> ranks, size_t rank) {
  const GpuPlace& own = ranks[rank];
  std::vector<int> local_ranks;
  int before = 0;
  for (size_t other = 0; other < ranks.size(); ++other) {
    if (!see_the_same(ranks[other], own)) continue;
    local_ranks.push_back(ranks[other].local_rank);
    before += other < rank ? 1 : 0;
  }
  std::sort(local_ranks.begin(), local_ranks.end());
  const bool are_places = std::adjacent_find(local_ranks.begin(), local_ranks.end()) == local_ranks.end() &&
                          local_ranks.front() >= 0 && local_ranks.back() < std::ssize(own.gpus);
  return are_places ? own.local_rank : before;
}

// NCCL takes ranks of different host ids for ones of different machines, and asks no further.
bool may_share_gpu(const GpuPlace& a, const GpuPlace& b) {
  return !a.nccl_host_id.empty() && !b.nccl_host_id.empty() && a.nccl_host_id != b.nccl_host_id;
}

[[noreturn]] void refuse_sharing(std::span<const GpuPlace> ranks, size_t first, size_t second, const std::string& gpu) {
  const GpuPlace& own = ranks[second];
  int64_t peers = 0, of_machine = 0;
  for (const GpuPlace& other : ranks) {
    peers += see_the_same(other, own) ? 1 : 0;
    of_machine += other.machine == own.machine ? 1 : 0;
  }
  const auto gpus = std::ssize(own.gpus);
  const std::string what =
      peers > gpus ? fmt::format("{} on a machine where each sees {}", plural(of_machine, "rank"), plural(gpus, "GPU"))
                   : fmt::format("ranks {} and {} would compute on the same GPU, {}", first, second, gpu);
  user_error(
      "{}: a GPU is for one rank; start as many ranks as there are GPUs (brisk launch -n {}, or one task for each GPU), or "
      "train on CPUs (\"device\": \"cpu\"). For tests several can share one, slowly, where each has its own NCCL_HOSTID "
      "and all have NCCL_SOCKET_IFNAME=lo and NCCL_IB_DISABLE=1",
      what, gpus);
}

}  // namespace

std::vector<GpuPlace> gather_places(const GpuPlace& own, Communicator& ranks) {
  std::string line =
      fmt::format("{}{}{}{}{}", own.machine, kBetweenFields, own.local_rank, kBetweenFields, own.nccl_host_id);
  for (const std::string& gpu : own.gpus) line += kBetweenFields + gpu;
  std::vector<GpuPlace> places;
  for (const std::string& text : ranks.gather(line)) {
    std::vector<std::string> fields(1);
    for (const char letter : text) {
      if (letter == kBetweenFields) {
        fields.emplace_back();
      } else {
        fields.back() += letter;
      }
    }
    BRISK_CHECK(fields.size() >= 3, "a rank says '{}' of its GPUs", text);
    GpuPlace place{.machine = fields[0], .nccl_host_id = fields[2]};
    std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), place.local_rank);
    place.gpus.assign(fields.begin() + 3, fields.end());
    places.push_back(std::move(place));
  }
  return places;
}

int choose_gpu(std::span<const GpuPlace> ranks, int rank) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].gpus.empty()) {
      user_error(
          "rank {} sees no GPU, and others do: give each rank one (Slurm: --gpus-per-task=1; CUDA_VISIBLE_DEVICES must "
          "not be empty), or train on CPUs (\"device\": \"cpu\")",
          i);
    }
    chosen.push_back(static_cast<size_t>(place_among_peers(ranks, i)) % ranks[i].gpus.size());
  }
  for (size_t second = 0; second < ranks.size(); ++second) {
    const std::string& gpu = ranks[second].gpus[chosen[second]];
    for (size_t first = 0; first < second; ++first) {
      const bool same = ranks[first].machine == ranks[second].machine && ranks[first].gpus[chosen[first]] == gpu;
      if (same && !may_share_gpu(ranks[first], ranks[second])) refuse_sharing(ranks, first, second, gpu);
    }
  }
  return static_cast<int>(chosen[static_cast<size_t>(rank)]);
}

}  // namespace brisk
