// Runs numbered pieces of work of uneven cost on all threads of the pool, dynamically scheduled.
//
//   run_pieces(files, [&](int64_t piece) { hashes[piece] = hash(piece); });
//
// A cancelled runtime begins no further piece: Cancelled. A piece may throw: the exception of the lowest-numbered piece that threw comes out of run_pieces, so that an error
// message does not depend on which thread was faster.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "base/runtime.h"

namespace brisk {

template <typename Body>
void run_pieces(int64_t pieces, const Body& body) {
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> failed{pieces};
  std::mutex mutex;
  std::exception_ptr exception;
  const auto work = [&](int) {
    for (int64_t piece; (piece = next.fetch_add(1)) < failed.load();) {
      try {
        throw_if_cancelled();
        body(piece);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (piece < failed.load()) {
          failed.store(piece);
          exception = std::current_exception();
        }
      }
    }
  };
  pieces > 1 ? thread_pool().run_parts(work) : work(0);
  if (exception) std::rethrow_exception(exception);
}

}  // namespace brisk
