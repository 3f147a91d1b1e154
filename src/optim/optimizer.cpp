#include "optim/optimizer.h"

#include <utility>

#include "optim/adamw.h"
#include "optim/muon.h"

namespace brisk {

int64_t OptimizerList::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& optimizer : optimizers_) bytes += optimizer->state_bytes();
  return bytes;
}

int64_t OptimizerList::workspace_bytes(bool on_gpu) const {
  int64_t bytes = 0;
  for (const auto& optimizer : optimizers_) bytes += optimizer->workspace_bytes(on_gpu);
  return bytes;
}

void OptimizerList::set_rates(int64_t step, double rate, StepNumbers& numbers) const {
  for (const auto& optimizer : optimizers_) optimizer->set_rates(step, rate, numbers);
}

void OptimizerList::update(const StepNumbers* numbers) {
  for (const auto& optimizer : optimizers_) optimizer->update(numbers);
}

std::unique_ptr<Optimizer> make_optimizer(const ParameterStore& store, const AdamWOptions& adamw,
                                          const std::optional<MuonOptions>& muon, int64_t begin, int64_t end) {
  using Kind = ParameterShard::Kind;
  if (!muon) return std::make_unique<AdamW>(store, adamw, ParameterShard{Kind::all, begin, end});
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  optimizers.push_back(std::make_unique<AdamW>(store, adamw, ParameterShard{Kind::not_hidden, begin, end}));
  optimizers.push_back(std::make_unique<Muon>(store, *muon, ParameterShard{Kind::hidden, begin, end}));
  return std::make_unique<OptimizerList>(std::move(optimizers));
}

}  // namespace brisk
