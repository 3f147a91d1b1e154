// Work on all cores that may throw.
//
//   run_on_team([&](int thread) { ... });     // the first exception (memory that ran out) is carried to the caller
#pragma once

#include <exception>
#include <vector>

#include "base/threads.h"

namespace brisk {

// Team's bodies must not throw.
template <typename Body>
void run_on_team(const Body& body) {
  std::vector<std::exception_ptr> failures(Team::instance().size());
  Team::instance().run([&](int thread) {
    try {
      body(thread);
    } catch (...) {
      failures[thread] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace brisk
