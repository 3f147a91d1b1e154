#include "optim/muon.h"

#include "base/error.h"
#include "ops/backend.h"

namespace brisk {

namespace {

// The logical matrices of the shard, in the order of the model; without memory where the store has none yet.
std::vector<MuonMatrix> hidden_matrices(const ParameterStore& store, const ParameterShard& shard) {
  std::vector<MuonMatrix> matrices;
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    if (!spec.hidden || !shard.has(spec)) continue;
    const std::vector<int64_t> parts = spec.parts.empty() ? std::vector<int64_t>{spec.rows} : spec.parts;
    int64_t row = 0;
    for (const int64_t rows : parts) {
      const int64_t offset = row * spec.cols;
      MuonMatrix matrix{.rows = rows, .cols = spec.cols, .begin = parameter->offset + offset};
      if (parameter->gradient) {
        if (parameter->master) matrix.parameters = parameter->master.f32() + offset;
        matrix.gradient = parameter->gradient.f32() + offset;
        matrix.momentum = parameter->first_moment.f32() + offset;
        if (parameter->compute.type == DType::bf16) matrix.copy = parameter->compute.bf16() + offset;
        if (parameter->compute.type == DType::f16) matrix.half_copy = parameter->compute.f16() + offset;
      }
      if (matrix.begin >= shard.begin && matrix.begin < shard.end) matrices.push_back(matrix);
      row += rows;
    }
    BRISK_CHECK(row == spec.rows, "{}: its parts have {} rows, it has {}", spec.name, row, spec.rows);
  }
  return matrices;
}

}  // namespace

Muon::Muon(const ParameterStore& store, const MuonOptions& options, const ParameterShard& shard)
    : store_(store), options_(options), matrices_(hidden_matrices(store, shard)) {}

int64_t Muon::state_bytes() const {
  int64_t elements = 0;
  for (const MuonMatrix& matrix : matrices_) elements += matrix.rows * matrix.cols;
  return elements * size_of(DType::f32);
}

int64_t Muon::workspace_bytes(bool on_gpu) const {
#if BRISK_HAVE_CUDA
  if (on_gpu) return cuda::muon_workspace_floats(matrices_) * size_of(DType::f32);
#endif
  BRISK_CHECK(!on_gpu, "this brisk was built without CUDA");
  return cpu::muon_workspace_floats(matrices_) * size_of(DType::f32);
}

void Muon::set_rates(int64_t /*step*/, double rate, StepNumbers& numbers) const {
  numbers.muon_rate = static_cast<float>(options_.rate_ratio * rate);
}

void Muon::update(const StepNumbers* numbers) {
  if (matrices_.empty()) return;
  Device& device = store_.device();
  // The number of threads may have changed since.
  if (const int64_t bytes = workspace_bytes(device.is_cuda()); workspace_.bytes() < bytes) {
    workspace_ = Buffer();
    workspace_ = Buffer(device, bytes);
  }
  MuonUpdate update;
  update.matrices = matrices_;
  update.workspace = static_cast<float*>(workspace_.data());
  update.momentum = static_cast<float>(options_.momentum);
  update.decay = static_cast<float>(options_.weight_decay);
  // bf16's exponents are wide enough for the powers of a Gram matrix whatever the compute type.
  const bool sixteen_bits = store_.compute_type() != DType::f32;
  update.arithmetic = sixteen_bits                            ? Arithmetic::bf16
                      : options_.products == GemmFormat::tf32 ? Arithmetic::tf32
                                                              : Arithmetic::f32;
  if (device.is_cuda()) {
    update.step = numbers;
    return BRISK_RUN_ON_GPU(muon_update, update);
  }
  DeviceAccess access(device);
  if (numbers->applied == 0) return;
  update.rate = numbers->muon_rate;
  update.gradient_scale = numbers->gradient_scale;
  cpu::muon_update(update);
}

}  // namespace brisk
