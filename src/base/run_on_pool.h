// Runs a body that may throw on all threads of the pool.
//
//   run_on_pool([&](int thread) { ... });     // the first exception is rethrown here
#pragma once

#include <exception>
#include <vector>

#include "base/runtime.h"

namespace brisk {

// (The bodies of ThreadPool::run itself must not throw.)
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
