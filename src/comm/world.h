// How many ranks there are and which this process is, as its launcher says it in environment variables.
//
//   const World world = find_world();          // of brisk launch, mpirun, srun or torchrun-style variables; else one rank
//   std::unique_ptr<Communicator> ranks = open_communicator(world);
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace brisk {

struct World {
  enum class Start : uint8_t { alone, launch, open_mpi, mpich, slurm, torchrun } start = Start::alone;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // of this machine; local_size is 0 where the launcher does not say it
  int descriptor = -1;                 // of brisk launch: its shared memory
  std::string address;                 // of rank 0, torchrun-style
  int port = 0;
  std::string job;  // of Slurm: job and step

  std::string started_by() const;  // "mpirun (Open MPI)"
};

// From the runtime's environment. UserError where the variables contradict each other.
World find_world();

// Of a process that is alone in an allocation of several tasks: how to start them all. Else empty.
std::string advice_to_one_task(const World& world);

// None where there is one rank. UserError where the others do not come, or are not of the same start: of rank 0 as it is, of
// the others with their rank and host.
std::unique_ptr<Communicator> open_communicator(const World& world);

}  // namespace brisk
