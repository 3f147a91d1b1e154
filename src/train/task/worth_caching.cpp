#include "train/task/worth_caching.h"

#include <fmt/format.h>

#include <cmath>

#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "job/run_length.h"

namespace brisk {

namespace {

// Making the file costs what the frozen layers cost in an epoch, and some writing.
constexpr double kPassesWorthwhile = 1.5;
constexpr int64_t kDiskReserve = int64_t{1} << 30;  // left free, for checkpoints and everyone else

// How often the run reads each text; of a run that ends after some time: often enough, for all one knows.
double passes_over(const Job& job, const Sequences& train) {
  const TrainingOptions& training = job.training;
  const double sequences = static_cast<double>(training.batch_size * training.gradient_accumulation_steps);
  const double steps_per_epoch = std::ceil(static_cast<double>(train.count()) / sequences);
  if (training.stop.empty()) {
    return training.max_steps > 0 ? static_cast<double>(training.max_steps) / steps_per_epoch
                                  : static_cast<double>(training.num_epochs);
  }
  const RunLength stop = parse_run_length(training.stop, "training.stop");
  switch (stop.unit) {
    case RunLength::Unit::epochs: return stop.amount;
    case RunLength::Unit::updates: return stop.amount / steps_per_epoch;
    case RunLength::Unit::tokens: return stop.amount / static_cast<double>(train.total_rows());
    case RunLength::Unit::seconds:
    case RunLength::Unit::allocation: break;
  }
  return kPassesWorthwhile;
}

}  // namespace

bool is_worth_caching(const Job& job, const Sequences& train) { return passes_over(job, train) >= kPassesWorthwhile; }

std::string no_room_to_cache(int64_t bytes, const std::string& directory, const std::string& what,
                             ProcessGroup& processes) {
  const int64_t there = disk_free_bytes(directory);
  if (!processes.broadcast(bytes > 0 && bytes > there - kDiskReserve)) return {};
  return fmt::format(
      "{} are recomputed in every epoch: caching them would need {} in {}, which has {} free (data.cache_dir chooses "
      "another folder)",
      what, format_bytes(static_cast<double>(bytes)), directory, format_bytes(static_cast<double>(there)));
}

}  // namespace brisk
