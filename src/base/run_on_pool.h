// Runs a body on all threads of the pool. Where several threads throw, the exception that is rethrown is that of the first
// thread, whichever was faster.
//
//   run_on_pool([&](int thread) { ... });
#pragma once

#include <exception>
#include <vector>

#include "base/runtime.h"

namespace brisk {

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
