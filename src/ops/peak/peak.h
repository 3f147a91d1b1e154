// The multiply-add rate of this machine in registers: the peak that "utilisation" refers to, everywhere.
//
//   PeakMeter peak(Arithmetic::f32);        // all threads of the ThreadPool, active instruction set
//   peak.sample();                          // 3 ms; between the steps of what is measured
//   const double gflops = peak.gflops();    // the median of the samples
//   const double now = measured_peak_gflops(Arithmetic::f32);   // 20 samples at once, 60 ms
//
// A shared machine changes its rate by a factor of two from second to second (other tenants, clock, hardware threads
// of one core), so a rate and the peak it is compared with are measured side by side, and medians are compared: the
// best burst of a run is a moment that no step saw.
#pragma once

#include <vector>

#include "ops/gemm/gemm.h"
#include "tensor/device.h"

namespace brisk {

class PeakMeter {
 public:
  explicit PeakMeter(Arithmetic arithmetic);
  // Of a GPU: what its products reach, measured once; samples change nothing.
  PeakMeter(Device& gpu, Arithmetic arithmetic);
  void sample();          // nothing for bf16 where there are no bf16 instructions
  double gflops() const;  // 0 before the first sample
  void count_processes(int64_t processes) {
    processes_ = processes;
  }  // that compute together, each as fast as this one

 private:
  Arithmetic arithmetic_;
  bool on_gpu_ = false;
  int64_t processes_ = 1;
  std::vector<double> rates_;  // of a sample each
};

double measured_peak_gflops(Arithmetic arithmetic);

// The rate of one large product (1024 x 1024 x 1024) through gemm(); best of several trials.
double measured_product_gflops(Arithmetic arithmetic);

// Of a GPU: large products, and memory copied within it, read and written bytes. What
// "utilisation" divides by there. 0 where this brisk was built without CUDA.
double gpu_product_gflops(Device& gpu, Arithmetic arithmetic);
double gpu_copy_gb_per_second(Device& gpu);
// Seconds that the least of a graph's kernels takes, from its beginning to that of the next.
double gpu_launch_seconds(Device& gpu);

}  // namespace brisk
