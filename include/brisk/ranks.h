// Processes that train one model together: the same job in each, started by `brisk launch`, mpirun, srun or with torchrun-style
// variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
//
//   brisk::Runtime runtime;
//   brisk::Ranks ranks(runtime);                       // reads the runtime's environment; alone where there is no launcher
//   brisk::train(runtime, job, {.ranks = &ranks});     // all call it; the first writes the run directory
//
// While it lives, the runtimes of all ranks but the first are quiet: their messages reach no log sink, their errors are
// exceptions. Where a machine has several ranks, each gets its share of the cores.
#pragma once

#include <brisk/error.h>

#include <memory>
#include <string>

namespace brisk {

class ProcessGroup;
class Runtime;

class Ranks {
 public:
  BRISK_API explicit Ranks(Runtime& runtime);
  BRISK_API ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  BRISK_API int rank() const;
  BRISK_API int size() const;
  BRISK_API std::string transport() const;  // "shared memory", "Open MPI v4.1.4"; empty: there is one

  // This rank ends early: the others, which wait for it or will, end with this reason.
  BRISK_API void fail(const std::string& reason) noexcept;

  ProcessGroup& group();  // for brisk's own code

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace brisk
