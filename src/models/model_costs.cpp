#include "models/model_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "tensor/program.h"
#include "tensor/tape.h"

namespace brisk {

namespace {

std::string component_of(const ParameterSpec& spec) {
  if (!spec.component.empty()) return spec.component;
  std::string component;
  const std::string_view path = std::string_view(spec.name).substr(0, spec.name.rfind('.'));
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool is_number = std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number) component += component.empty() ? std::string(part) : "." + std::string(part);
    begin = end + 1;
  }
  return component;
}

class CostTable {
 public:
  explicit CostTable(const Tape& tape) {
    for (const Node& node : tape.nodes()) {
      for (const Parameter* parameter : node.parameters) first_reader_.emplace(parameter, node.op->family());
    }
  }

  ComponentCost& row(const std::string& component) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.component == component; });
    return found != rows.end() ? *found : rows.emplace_back(ComponentCost{component});
  }

  std::string component_of_node(const Node& node) const {
    const OpFamily family = node.op->family();
    if (node.parameters.empty()) return family == OpFamily::attention ? "attention" : node.op->name();
    for (const Parameter* parameter : node.parameters) {
      if (first_reader_.at(parameter) == family) return component_of(parameter->spec);
    }
    return fmt::format("head (the {})", component_of(node.parameters[0]->spec));
  }

  std::vector<ComponentCost> rows;

 private:
  std::map<const Parameter*, OpFamily> first_reader_;
};

}  // namespace

std::vector<ComponentCost> model_costs(const ModelConfig& config, std::span<const RowMeans> sets) {
  ParameterStore store;
  const std::unique_ptr<Model> model = make_model(config, store);
  Tape tape({.rows = std::vector<RowCapacity>(sets.size(), {1, 1, 1})});
  model->loss(tape, {});
  const Program program(tape, {});
  const std::vector<double> flop = program.flop(sets);
  double tokens = 0;
  for (const RowMeans& set : sets) tokens += set.derived ? 0 : set.rows;
  BRISK_CHECK(tokens > 0, "the cost of sequences without rows");

  CostTable table(tape);
  for (size_t n = 0; n < flop.size(); ++n) {
    const Node& node = tape.nodes()[n];
    for (const Parameter* parameter : node.parameters) table.row(component_of(parameter->spec));
    if (flop[n] > 0) table.row(table.component_of_node(node)).flop_per_token += flop[n];
  }
  for (ComponentCost& row : table.rows) row.flop_per_token /= tokens;
  for (const auto& parameter : store.all()) table.row(component_of(parameter->spec)).parameters += parameter->count();
  return std::move(table.rows);
}

double model_flop_per_token(const ModelConfig& config, std::span<const RowMeans> sets) {
  double sum = 0;
  for (const ComponentCost& cost : model_costs(config, sets)) sum += cost.flop_per_token;
  return sum;
}

}  // namespace brisk
