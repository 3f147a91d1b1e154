// Progress of work measured in bytes: a bar on a terminal, a line every ten seconds elsewhere.
//
//   WorkBar bar("tokens of corpus.txt");
//   bar.update(done, total);        // as often as you like
//
//   tokens of corpus.txt [#########---------------------] 1.20 of 4.00 GiB, 48.1 MiB/s, left 1m 00s
//
// The destructor removes the bar; the caller reports what was done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/log.h"

namespace brisk {

// The line above, fitted into `width` columns; a speed of 0 is not shown.
std::string format_work(const std::string& what, int64_t done, int64_t total, double bytes_per_second, int width);

class WorkBar {
 public:
  explicit WorkBar(std::string what);
  ~WorkBar();
  WorkBar(const WorkBar&) = delete;
  WorkBar& operator=(const WorkBar&) = delete;

  void update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  LogSink& log_;
  int64_t first_ = -1;  // done at the first update: the work of an earlier process does not count for the speed
  Clock::time_point started_, told_;
};

}  // namespace brisk
