// Products that do not wait for each other, side by side: each alone leaves multiprocessors idle at its end, and small
// ones most of them.
//
//   SideStream beside;
//   beside.queue([&] { multiply(weight_gradient); });
//   multiply(input_gradient);      // at the same time
//   beside.join();                 // what is queued now waits for both
//
// Only where a graph is recorded; otherwise it is queued in order, so that what is timed is timed alone. What is queued
// beside may not use cuda::workspace(): that belongs to the main stream. Products have a workspace for each.
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
