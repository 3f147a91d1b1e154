#include "train/run/plan/rank_checks.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/machine/isa.h"
#include "checkpoint/checksum.h"
#include "comm/communicator.h"

namespace brisk {

void check_parts(const Job& job, ProcessGroup& processes) {
  const int64_t parts = job.training.logical_ranks, size = processes.size();
  if (parts == 0) return;
  if (!std::has_single_bit(static_cast<uint64_t>(parts)))
    user_error("training.logical_ranks is {}: it must be a power of two; use 2, 4, 8 or 16", parts);
  if (parts % size != 0) {
    user_error(
        "training.logical_ranks is {}: it is not a multiple of the {} ranks; start with a number of ranks that divides it",
        parts, size);
  }
}

void check_alike(std::string_view what, const std::string& own, ProcessGroup& processes) {
  if (processes.communicator() == nullptr) return;
  const std::vector<std::string> all = processes.communicator()->gather(fmt::format("{:016x}", hash_bytes(own)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    constexpr size_t kShort = 60;
    user_error("rank {} of {} differs from rank 0 in {}{}; all ranks must be started alike", rank, all.size(), what,
               own.size() <= kShort ? fmt::format(" ({} on rank {})", own, processes.rank()) : "");
  }
}

void check_started_alike(const Job& job, const TrainRequest& request, ProcessGroup& processes) {
  if (processes.communicator() == nullptr) return;
  check_alike("how it is started (--resume, --overwrite, --dry-run)",
              fmt::format("{}{}{}", request.resume, request.overwrite, request.dry_run), processes);
  check_alike("the job", job_to_json_text(job), processes);
  check_alike("the program", checksum_of_file("/proc/self/exe"), processes);
  check_alike("the instruction set of the processor (BRISK_ISA chooses a lower one for all)",
              std::string(isa_name(active_isa())), processes);
}

}  // namespace brisk
