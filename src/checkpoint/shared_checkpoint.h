// A checkpoint that several processes write together, each its own ranges of the same files (CheckpointTensor::own_offset). The
// files are those that one process writes, to the byte, and as atomic: they lie in a folder that has no checkpoint's name until
// all are complete.
//
//   std::string problem = begin_shared_checkpoint(run, tensors, step);       // the first process; then the others may write
//   SavedShare share = write_share(run, tensors, step);                      // each; by any thread
//   ... the shares of all come to the first process (share.text(), saved_share_from_text())
//   SaveResult saved = end_shared_checkpoint(run, tensors, state, shares);   // the first process; by any thread
//
// None of them throws: what goes wrong is in the results, and a share that was not written makes the whole save fail. The run
// directory is one that all processes see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace brisk {

// What one process wrote.
struct SavedShare {
  // Consecutive bytes of one block of a file's checksum (checkpoint/checksum.h): all of the block, or what this process has of it.
  struct Written {
    int64_t begin = 0, bytes = 0;
    uint64_t checksum = 0;
  };
  std::string problem;  // empty: none
  int64_t bytes = 0;
  std::vector<Written> model, optimizer;

  std::string text() const;
};
SavedShare saved_share_from_text(std::string_view text);

// Makes the folder and the files, as long as they will be and with their headers. Returns why that failed, or nothing.
std::string begin_shared_checkpoint(const std::string& run, const CheckpointTensors& tensors, int64_t step);

SavedShare write_share(const std::string& run, const CheckpointTensors& tensors, int64_t step);

// `shares`: of all processes, in their order. Takes the checksums of the blocks that several wrote, in which it looks for what each
// of them did (file systems of several machines lose some of what these write side by side), writes state.json and gives the folder
// its name. Where that fails, or one of the shares did, the folder is removed.
SaveResult end_shared_checkpoint(const std::string& run, const CheckpointTensors& tensors, CheckpointState state,
                                 const std::vector<SavedShare>& shares);

}  // namespace brisk
