#include "comm/world.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "comm/control.h"
#include "comm/mpi.h"
#include "comm/rendezvous.h"
#include "comm/shared_memory.h"

namespace brisk {

namespace {

std::string variable(std::string_view name) { return std::string(Runtime::current().environment(name)); }

std::optional<int> number_in(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Of a variable that must be there: its launcher sets it with the others.
int number_of(std::string_view name) {
  const std::string text = variable(name);
  const std::optional<int> value = number_in(text);
  if (!value) {
    user_error("{} is {}, expected a number: launchers set it for each rank; unset the others to train in one process",
               name, text.empty() ? "not set" : "\"" + text + "\"");
  }
  return *value;
}

int number_or(std::string_view name, int otherwise) { return variable(name).empty() ? otherwise : number_of(name); }

void check(const World& world) {
  if (world.size < 1 || world.rank >= world.size) {
    user_error("{} says rank {} of {}: ranks are numbered from 0 to one less than their number", world.started_by(),
               world.rank, world.size);
  }
}

}  // namespace

std::string World::started_by() const {
  switch (start) {
    case Start::alone: return "nobody";
    case Start::launch: return "brisk launch";
    case Start::open_mpi: return "mpirun (Open MPI)";
    case Start::mpich: return "mpiexec (MPICH)";
    case Start::slurm: return "srun";
    case Start::torchrun: return "RANK and WORLD_SIZE";
  }
  return "";
}

World find_world() {
  World world;
  if (!variable("BRISK_RANK").empty()) {
    world = {.start = World::Start::launch,
             .rank = number_of("BRISK_RANK"),
             .size = number_of("BRISK_WORLD_SIZE"),
             .descriptor = number_of("BRISK_RANKS_MEMORY")};
    world.local_rank = world.rank;
    world.local_size = world.size;
  } else if (!variable("OMPI_COMM_WORLD_SIZE").empty()) {
    world = {.start = World::Start::open_mpi,
             .rank = number_of("OMPI_COMM_WORLD_RANK"),
             .size = number_of("OMPI_COMM_WORLD_SIZE"),
             .local_rank = number_of("OMPI_COMM_WORLD_LOCAL_RANK"),
             .local_size = number_of("OMPI_COMM_WORLD_LOCAL_SIZE")};
  } else if (!variable("PMIX_RANK").empty() && !variable("SLURM_STEP_NUM_TASKS").empty()) {
    world = {.start = World::Start::open_mpi,
             .rank = number_of("PMIX_RANK"),
             .size = number_of("SLURM_STEP_NUM_TASKS"),
             .local_rank = number_or("SLURM_LOCALID", 0)};
    world.local_size = world.size / std::max(1, number_or("SLURM_STEP_NUM_NODES", 1));
  } else if (!variable("PMI_SIZE").empty()) {
    world = {.start = World::Start::mpich,
             .rank = number_of("PMI_RANK"),
             .size = number_of("PMI_SIZE"),
             .local_rank = number_or("MPI_LOCALRANKID", 0),
             .local_size = number_or("MPI_LOCALNRANKS", 1)};
  } else if (!variable("WORLD_SIZE").empty() && !variable("RANK").empty()) {
    world = {.start = World::Start::torchrun, .rank = number_of("RANK"), .size = number_of("WORLD_SIZE")};
    world.local_rank = number_or("LOCAL_RANK", world.rank);
    world.local_size = number_or("LOCAL_WORLD_SIZE", 0);
    world.address = variable("MASTER_ADDR");
    world.port = number_or("MASTER_PORT", 0);
  } else if (!variable("SLURM_STEP_NUM_TASKS").empty() && !variable("SLURM_STEP_ID").empty()) {
    world = {.start = World::Start::slurm,
             .rank = number_of("SLURM_PROCID"),
             .size = number_of("SLURM_STEP_NUM_TASKS"),
             .local_rank = number_or("SLURM_LOCALID", 0)};
    const int nodes = number_or("SLURM_STEP_NUM_NODES", number_or("SLURM_NNODES", 1));
    world.local_size = nodes == 1 ? world.size : 1;
    world.job = fmt::format("{}.{}", variable("SLURM_JOB_ID"), variable("SLURM_STEP_ID"));
  }
  check(world);
  return world;
}

std::string advice_to_one_task(const World& world) {
  if (world.start != World::Start::alone || variable("SLURM_JOB_ID").empty()) return "";
  const std::optional<int> tasks = number_in(variable("SLURM_NTASKS"));
  if (!tasks || *tasks < 2) return "";
  return fmt::format("the Slurm job has {} tasks, but this is one process: start all of them with srun brisk train ...",
                     *tasks);
}

namespace {

// Ranks that nobody gave a memory: those of one machine meet there.
std::unique_ptr<Communicator> connect_by_address(const World& world) {
  if (world.local_size == 0) {
    const std::unique_ptr<Control> control = open_control(world);
    if (!control->is_one_machine()) {
      std::string places;
      for (size_t rank = 0; rank < control->hosts().size() && rank < 4; ++rank)
        places += fmt::format("{}rank {} on {}", rank > 0 ? ", " : "", rank, control->hosts()[rank]);
      user_error(
          "{} started {} ranks on several machines or network namespaces ({}): between machines they need MPI; start them with "
          "mpirun or srun --mpi=pmix",
          world.started_by(), world.size, places);
    }
  } else if (world.local_size != world.size) {
    user_error(
        "{} started {} ranks on several machines: between machines they need MPI; start them with mpirun or srun --mpi=pmix",
        world.started_by(), world.size);
  }
  return open_shared_memory(meet(world), world.rank);
}

std::unique_ptr<Communicator> connect(const World& world) {
  switch (world.start) {
    case World::Start::alone: return nullptr;
    case World::Start::launch: {
      SharedSegment segment = SharedSegment::inherited(world.descriptor);
      if (segment.ranks() != world.size)
        user_error("BRISK_WORLD_SIZE is {}, but brisk launch made memory for {} ranks", world.size, segment.ranks());
      return open_shared_memory(std::move(segment), world.rank);
    }
    case World::Start::open_mpi:
    case World::Start::mpich: return open_mpi(world);
    case World::Start::slurm:
    case World::Start::torchrun: break;
  }
  return connect_by_address(world);
}

}  // namespace

std::unique_ptr<Communicator> open_communicator(const World& world) {
  if (world.size == 1) return nullptr;
  try {
    return connect(world);
  } catch (const UserError& error) {
    if (world.rank == 0) throw;
    // Mostly rank 0 has the same reason, and its launcher ends the others.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    user_error("rank {} of {} on {}: {}", world.rank, world.size, host_name(), error.what());
  }
}

}  // namespace brisk
