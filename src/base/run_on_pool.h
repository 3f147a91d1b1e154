// Work on all cores that may throw.
//
//   run_on_pool([&](int thread) { ... });     // the first exception (memory that ran out) is carried to the caller
#pragma once

#include <exception>
#include <vector>

#include "base/runtime.h"

namespace brisk {

// ThreadPool's bodies must not throw.
template <typename Body>
void run_on_pool(const Body& body) {
  std::vector<std::exception_ptr> failures(thread_pool().size());
  thread_pool().run([&](int thread) {
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
