// What Muon needs around its products on the GPU. Free of CUDA's headers.
#pragma once

#include "ops/optimizer/muon.h"

namespace brisk::cuda {

// Matrices of one shape that are updated together; passed to kernels by value.
struct MuonGroup {
  static constexpr int kMost = 56;  // of 64 bytes: a kernel's arguments have 4 KiB
  MuonMatrix matrices[kMost];
  int64_t count = 0, rows = 0, cols = 0;
};

struct MuonPass {
  float momentum = 0.95f, decay = 0, rate = 0, gradient_scale = 1;
  const StepNumbers* step = nullptr;  // where given: rate and scale are its, and nothing changes unless it is applied
};

constexpr int64_t kMuonPartials = 64;  // sums of squares of a matrix

// The momenta, and the directions X, each of length 1: [count, rows, cols] f32 or bf16. partials: [count,
// kMuonPartials].
void muon_directions(const MuonGroup& group, const MuonPass& pass, double* partials, const Tensor& x);
void muon_apply(const MuonGroup& group, const MuonPass& pass, const Tensor& x);

}  // namespace brisk::cuda
