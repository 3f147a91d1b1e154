// One rank of the suite of collectives, for the launchers: mpirun -n 3 comm_ranks. Prints a line and exits with 0 where all is
// right.
#include <cstdio>
#include <exception>

#include "base/runtime.h"
#include "check_collectives.h"
#include "comm/world.h"

int main() {
  brisk::Runtime runtime({.threads = 1});
  const brisk::RuntimeScope scope(runtime);
  try {
    const brisk::World world = brisk::find_world();
    const std::unique_ptr<brisk::Communicator> ranks = brisk::open_communicator(world);
    if (!ranks) {
      std::fprintf(stderr, "no launcher started this\n");
      return 2;
    }
    brisk::check_collectives(*ranks);
    std::printf("rank %d of %d: %s, all collectives are right\n", ranks->rank(), ranks->size(),
                ranks->transport().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
