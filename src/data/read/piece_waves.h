// Processes pieces of text on all cores, delivers the results in order, and reads and decompresses the next ones
// meanwhile.
//
//   run_waves(reader, [&](const TextPiece& piece) { return count_words(piece); },           // on any thread
//             [&](const TextPiece& piece, int64_t words) { total += words; return true; }); // in order, on this thread
//
// `reader` has next(TextPiece&), which is false at the end.
//
// Memory: two waves of pieces and the results of one. `take` returns false to stop. An exception of `work` is that of
// the first piece that threw, so that a message does not depend on which thread was faster.
#pragma once

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include "base/runtime.h"
#include "data/read/pieces.h"
#include "data/read/text_pieces.h"

namespace brisk {

template <typename Reader, typename Work, typename Take>
void run_waves(Reader& reader, const Work& work, const Take& take) {
  using Result = decltype(work(std::declval<TextPiece&>()));
  // Four pieces of 256 KiB for each core: enough that they end together.
  const size_t wave_bytes = std::max(size_t{4} << 20, static_cast<size_t>(thread_pool().size()) << 20);
  struct Wave {
    std::vector<TextPiece> pieces;
    std::exception_ptr problem;  // with what comes after them
  };
  const auto read_wave = [&, &runtime = Runtime::current()]() -> Wave {
    const RuntimeScope scope(runtime);  // it may run in a thread of its own
    Wave wave;
    try {
      TextPiece piece;
      for (size_t bytes = 0; bytes < wave_bytes && reader.next(piece); bytes += wave.pieces.back().text.size()) {
        wave.pieces.push_back(std::move(piece));
        piece = {};
      }
    } catch (...) {
      wave.problem = std::current_exception();
    }
    return wave;
  };
  for (Wave wave = read_wave();;) {
    const bool last = wave.pieces.empty() || wave.problem;
    std::future<Wave> next;  // waits for its thread where we leave by an exception
    if (!last) {
      try {
        next = std::async(std::launch::async, read_wave);
      } catch (const std::system_error&) {  // no thread to be had: read when it is wanted
        next = std::async(std::launch::deferred, read_wave);
      }
    }
    std::vector<Result> results(wave.pieces.size());
    run_pieces(std::ssize(wave.pieces), [&](int64_t i) {
      const auto index = static_cast<size_t>(i);
      results[index] = work(wave.pieces[index]);
    });
    for (size_t i = 0; i < wave.pieces.size(); ++i) {
      if (!take(std::as_const(wave.pieces[i]), std::move(results[i]))) return;
    }
    if (wave.problem) std::rethrow_exception(wave.problem);
    if (last) return;
    wave = next.get();
  }
}

}  // namespace brisk
