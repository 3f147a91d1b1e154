// Ranks that an MPI launcher started (mpirun, srun --mpi=pmix). The library is loaded when it is first needed and is the one of
// the launcher: Open MPI or MPICH (and what has MPICH's binary interface, such as Intel MPI). BRISK_MPI_LIBRARY names another.
//
//   auto ranks = open_mpi(find_world());                 // MPI_Init ... MPI_Finalize when it goes
//
// Nothing of MPI is linked, and no header of it is used: the two families differ in what a handle is, and that is declared here.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/world.h"

namespace brisk {

// UserError where no library can be loaded, or where it says that there are other ranks than the launcher does.
std::unique_ptr<Communicator> open_mpi(const World& world);

}  // namespace brisk
