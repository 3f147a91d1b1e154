// The multiply-add rate of this machine in registers: what "utilisation" divides by, everywhere.
//
//   const double peak = measured_peak_gflops(Arithmetic::f32);   // all threads of the Team, active instruction set;
//   ~50 ms
#pragma once

#include "ops/gemm.h"

namespace brisk {

// Best of several short trials; 0 for bf16 where there are no bf16 instructions.
double measured_peak_gflops(Arithmetic arithmetic);

// The rate of one large product (1024 x 1024 x 1024) through gemm(); best of several trials.
double measured_product_gflops(Arithmetic arithmetic);

}  // namespace brisk
