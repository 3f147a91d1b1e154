// Fork and join on a second stream, for independent matrix products: each alone leaves multiprocessors idle at its end,
// and small ones leave most of them idle.
//
//   SideStream side_stream;
//   side_stream.queue([&] { multiply(weight_gradient); });
//   multiply(input_gradient);      // at the same time
//   side_stream.join();                 // what is queued now waits for both
//
// Only while a graph is recorded; otherwise work is queued in order, so that it is timed alone. Work on the side stream
// may not use cuda::workspace(), which belongs to the main stream; products have a workspace per stream.
#pragma once

#include <functional>

namespace brisk::cuda {

class SideStream {
 public:
  SideStream() = default;
  void queue(const std::function<void()>& work);
  void join();

 private:
  bool apart_ = false;
};

}  // namespace brisk::cuda
