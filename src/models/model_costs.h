// What training a model costs, by component: read from the ops that the model records, so no architecture counts its own.
//
//   const std::vector<RowMeans> sets = {{.rows = 100, .attended = 120}};   // or row_means() of sequences
//   for (const ComponentCost& cost : model_costs(config, sets)) ...        // {"attention", 0, 16.5e6}
//
// A parameter is counted in the component it was declared with (ParameterSpec::component), or else in one by its name:
// "block.qkv" of block.qkv.weight, "layers.qkv" of layers.3.qkv.weight. An op is counted where its weight is; one without
// parameters where its ledger family is, and a loss whose weight is a table that others read in a row of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "tensor/rows.h"

namespace brisk {

struct ComponentCost {
  std::string component;
  int64_t parameters = 0;
  double flop_per_token = 0;  // training: forward and the gradients that are computed (OpCost)
};

// In the order in which the model uses them. `sets`: what each row set of a micro-batch is like.
std::vector<ComponentCost> model_costs(const ModelConfig& config, std::span<const RowMeans> sets);
// Their sum: the FLOP of utilisation (docs/architecture.md).
double model_flop_per_token(const ModelConfig& config, std::span<const RowMeans> sets);

}  // namespace brisk
