#include <brisk/ranks.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "base/machine/process.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "comm/world.h"
#include "train/engine/process_group.h"

namespace brisk {

namespace {

// Of a rank where a machine has several: launchers that bind ranks to cores have divided them already.
int threads_of_rank(int ranks_of_cores) {
  if (const std::string given(Runtime::current().environment("BRISK_RANK_THREADS")); !given.empty())
    return std::max(1, std::atoi(given.c_str()));
  return cores_of_task(Runtime::current().environment("SLURM_CPUS_PER_TASK"), ranks_of_cores);
}

// How many ranks may use the very cores that this one may, and how many are on its machine.
struct Neighbours {
  int of_cores = 0, of_machine = 0;
};
Neighbours neighbours_of(Communicator& ranks) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof(cores), &cores);
  const std::string mask(reinterpret_cast<const char*>(&cores), sizeof(cores)), machine = boot_id();
  const std::vector<std::string> masks = ranks.gather(mask), machines = ranks.gather(machine);
  Neighbours neighbours;
  for (size_t rank = 0; rank < masks.size(); ++rank) {
    if (machines[rank] != machine) continue;
    ++neighbours.of_machine;
    neighbours.of_cores += masks[rank] == mask ? 1 : 0;
  }
  return neighbours;
}

}  // namespace

struct Ranks::Content {
  Runtime& runtime;
  int threads;  // that the runtime had before
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ConnectedProcesses> processes;
};

Ranks::Ranks(Runtime& runtime) {
  const RuntimeScope scope(runtime);
  const World world = find_world();
  content_.reset(new Content{.runtime = runtime,
                             .threads = runtime.threads(),
                             .communicator = open_communicator(world),
                             .processes = nullptr});
  if (!content_->communicator) {
    if (const std::string advice = advice_to_one_task(world); !advice.empty()) say("{}", advice);
    return;
  }
  const Neighbours neighbours = neighbours_of(*content_->communicator);
  content_->processes =
      std::make_unique<ConnectedProcesses>(*content_->communicator, neighbours.of_machine, world.local_rank);
  runtime.set_quiet(world.rank > 0);
  if (neighbours.of_machine > 1) runtime.set_threads(threads_of_rank(neighbours.of_cores));
}

// Whoever catches an error that ends it finds the runtime as quiet as it was.
Ranks::~Ranks() {
  if (std::uncaught_exceptions() > 0) return;
  content_->runtime.set_quiet(false);
  content_->runtime.set_threads(content_->threads);
}

int Ranks::rank() const { return content_->communicator ? content_->communicator->rank() : 0; }
int Ranks::size() const { return content_->communicator ? content_->communicator->size() : 1; }
std::string Ranks::transport() const { return content_->communicator ? content_->communicator->transport() : ""; }

void Ranks::fail(const std::string& reason) noexcept {
  if (content_->communicator) content_->communicator->fail(reason);
}

ProcessGroup& Ranks::group() {
  return content_->processes ? static_cast<ProcessGroup&>(*content_->processes) : single_process();
}

}  // namespace brisk
