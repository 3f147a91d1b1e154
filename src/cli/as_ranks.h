// Runs a command as one of the ranks that a launcher started, or alone.
//
//   command->callback([&runtime] { run_as_ranks(runtime, [](Ranks& ranks) { ... }); });
#pragma once

#include <brisk/ranks.h>

#include <exception>

namespace brisk {

// What ends `work` early ends the other ranks with the same reason.
template <typename Work>
void run_as_ranks(Runtime& runtime, const Work& work) {
  Ranks ranks(runtime);
  try {
    work(ranks);
  } catch (const std::exception& error) {
    ranks.fail(error.what());
    throw;
  }
}

}  // namespace brisk
