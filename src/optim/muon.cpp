#include "optim/muon.h"

#include "base/error.h"
#include "ops/backend.h"

namespace brisk {

namespace {

// The logical matrices of the store, in flat order; without memory where the store has none yet.
std::vector<MuonMatrix> hidden_matrices(const ParameterStore& store) {
  std::vector<MuonMatrix> matrices;
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    if (!spec.hidden || !spec.trained) continue;
    const std::vector<int64_t> parts = spec.parts.empty() ? std::vector<int64_t>{spec.rows} : spec.parts;
    int64_t row = 0;
    for (const int64_t rows : parts) {
      MuonMatrix matrix{.rows = rows, .cols = spec.cols};
      if (parameter->gradient) {
        const int64_t offset = row * spec.cols;
        if (parameter->master) matrix.parameters = parameter->master.f32() + offset;
        matrix.begin = parameter->offset + offset;
        matrix.gradient = parameter->gradient.f32() + offset;
        matrix.momentum = parameter->first_moment.f32() + offset;
        if (parameter->compute.type == DType::bf16) matrix.copy = parameter->compute.bf16() + offset;
        if (parameter->compute.type == DType::f16) matrix.half_copy = parameter->compute.f16() + offset;
      }
      matrices.push_back(matrix);
      row += rows;
    }
    BRISK_CHECK(row == spec.rows, "{}: its parts have {} rows, it has {}", spec.name, row, spec.rows);
  }
  return matrices;
}

int64_t bytes_for(const std::vector<MuonMatrix>& matrices, bool on_gpu) {
#if BRISK_HAVE_CUDA
  if (on_gpu) return cuda::muon_workspace_floats(matrices) * size_of(DType::f32);
#endif
  BRISK_CHECK(!on_gpu, "this brisk was built without CUDA");
  return cpu::muon_workspace_floats(matrices) * size_of(DType::f32);
}

}  // namespace

Muon::Muon(const ParameterStore& store, const MuonOptions& options)
    : store_(store), options_(options), matrices_(hidden_matrices(store)) {}

int64_t Muon::workspace_bytes(const ParameterStore& store, bool on_gpu) {
  return bytes_for(hidden_matrices(store), on_gpu);
}

MuonUpdate Muon::prepare() {
  // The number of threads may have changed since.
  if (const int64_t bytes = bytes_for(matrices_, store_.device().is_cuda()); workspace_.bytes() < bytes) {
    workspace_ = Buffer();
    workspace_ = Buffer(store_.device(), bytes);
  }
  MuonUpdate update;
  update.matrices = matrices_;
  update.workspace = static_cast<float*>(workspace_.data());
  update.momentum = static_cast<float>(options_.momentum);
  update.decay = static_cast<float>(options_.weight_decay);
  // bf16's exponents are wide enough for the powers of a Gram matrix whatever the compute type.
  const bool sixteen_bits = store_.compute_type() != DType::f32;
  update.arithmetic = sixteen_bits                               ? Arithmetic::bf16
                      : options_.products == ProductFormat::tf32 ? Arithmetic::tf32
                                                                 : Arithmetic::f32;
  return update;
}

void Muon::step(double rate, double gradient_scale) {
  if (matrices_.empty()) return;
  MuonUpdate update = prepare();
  update.rate = static_cast<float>(options_.rate_ratio * rate);
  update.gradient_scale = static_cast<float>(gradient_scale);
  DeviceAccess access(store_.device());
  cpu::muon_update(update);
}

void Muon::step_on_gpu(const StepNumbers* numbers) {
  if (matrices_.empty()) return;
  MuonUpdate update = prepare();
  update.step = numbers;
  BRISK_RUN_ON_GPU(muon_update, update);
}

}  // namespace brisk
