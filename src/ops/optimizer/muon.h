// muon: momentum, orthogonalised, for matrices between hidden layers.
//
//   MuonUpdate op{.matrices = matrices, .workspace = memory, .rate = 0.01f, .decay = 0.1f};
//   cpu::muon_update(op);                 // memory: cpu::muon_workspace_floats(matrices) floats
//
// For each matrix P [R, C] with gradient G and momentum M:
//   g = gradient_scale G;  M += (1 - momentum)(g - M)
//   X = g + momentum (M - g)                                                 Nesterov's look ahead
//   X = X / |X|, then five times X = (a I + b S + c S S) X with S = X X^T    every singular value comes near 1
//   P -= rate (decay P + sqrt(max(1, R / C)) X)
// The Gram matrix S is the one of the shorter side: X^T X, multiplied from the right, where R > C.
//
// sqrt(max(1, R / C)) lets every matrix change its output by about `rate` of its input's length, whatever its shape, so
// that one rate serves all widths. The other convention, 0.2 sqrt(max(R, C)), makes the update as long as AdamW's, and
// its rate then falls with the width as AdamW's does.
#pragma once

#include <cstdint>
#include <span>

#include "ops/gemm/gemm.h"
#include "ops/optimizer/update.h"
#include "tensor/dtype.h"

namespace brisk {

struct MuonMatrix {
  float* parameters = nullptr;      // [rows, cols]; none, on a GPU: the copy is all there is, rounded stochastically
  const float* gradient = nullptr;  // [rows, cols]
  float* momentum = nullptr;        // [rows, cols]
  bf16_t* copy = nullptr;           // the bf16 compute copy, rewritten; or none
  int64_t rows = 0, cols = 0;
  int64_t begin = 0;           // in the flat arrays
  f16_t* half_copy = nullptr;  // on a GPU, in place of `copy`: one in f16
};

struct MuonUpdate {
  std::span<const MuonMatrix> matrices;
  float* workspace = nullptr;
  float rate = 0, momentum = 0.95f, decay = 0;
  float gradient_scale = 1;                 // the clipping factor
  Arithmetic arithmetic = Arithmetic::f32;  // of the products
  const StepNumbers* step = nullptr;  // on a GPU: rate and gradient_scale are these, and nothing changes unless applied
};

// The quintic whose five-fold application brings singular values from (0.003, 1] to about [0.7, 1.2]; a steeper start
// than the polynomial that converges to 1 exactly, which would need twice the rounds. (Coefficients: Jordan et al.)
constexpr int kMuonRounds = 5;
constexpr float kMuonA = 3.4445f, kMuonB = -4.7750f, kMuonC = 2.0315f;

namespace ref {
void muon_update(const MuonUpdate& op);  // needs no workspace, and always multiplies in fp32
}  // namespace ref
namespace cpu {
// Every thread pool and every division of the work gives the same bits.
void muon_update(const MuonUpdate& op);
int64_t muon_workspace_floats(std::span<const MuonMatrix> matrices);  // for the ThreadPool's size
}  // namespace cpu
namespace cuda {
void muon_update(const MuonUpdate& op);
int64_t muon_workspace_floats(std::span<const MuonMatrix> matrices);
}  // namespace cuda

}  // namespace brisk
