#include "doctor/show/planning_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/show/json_values.h"
#include "doctor/show/planning_facts.h"
#include "doctor/show/schema_parts.h"

namespace brisk {

namespace {

using PlanJson = nlohmann::ordered_json;

PlanJson json_of_rates(const MachineRates& machine) {
  return {{"file", machine.path.empty() ? PlanJson() : PlanJson(machine.path)},
          {"name", machine.name},
          {"cores", machine.cores},
          {"on_gpu", machine.on_gpu},
          {"memory_bytes", std::max<int64_t>(0, machine.memory_bytes)},
          {"product_gflops",
           {{"fp32", from_zero_or_null(machine.fp32_products)}, {"bf16", from_zero_or_null(machine.bf16_products)}}},
          {"memory_gb_per_second", above_zero_or_null(machine.copy_gb_per_second)}};
}

// The figures that every outlook has, in the names that scripts know.
PlanJson json_of_outlook(const Outlook& outlook) {
  return {{"parameters", outlook.parameters},
          {"flop_per_token", finite_or_null(outlook.flop_per_token)},
          {"memory_bytes", outlook.memory_bytes},
          {"fits", outlook.fits},
          {"tokens_per_second", above_zero_or_null(outlook.tokens_per_second)},
          {"step_seconds", above_zero_or_null(outlook.step_seconds)},
          {"epoch_seconds", above_zero_or_null(outlook.epoch_seconds)},
          {"run_seconds", above_zero_or_null(outlook.run_seconds)},
          {"disk_bytes", outlook.disk_bytes},
          {"ranks", outlook.ranks},
          {"part_seconds", above_zero_or_null(outlook.part_seconds)},
          {"exposed_communication_seconds", from_zero_or_null(outlook.exposed_seconds)},
          {"basis", outlook.basis}};
}

PlanJson json_of_size(const JobSize& size) {
  PlanJson components = PlanJson::array();
  for (const ComponentReadings& component : size.components) {
    components.push_back({{"name", component.name},
                          {"parameters", component.parameters},
                          {"flop_per_token", finite_or_null(component.flop_per_token)}});
  }
  const JobSize::Memory& memory = size.memory;
  const JobSize::Disk& disk = size.disk;
  return {{"trained_parameters", size.trained_parameters},
          {"components", components},
          {"memory",
           {{"weights", memory.weights},
            {"gradients", memory.gradients},
            {"optimizer", memory.optimizer},
            {"activations", memory.activations},
            {"evaluation", memory.evaluation},
            {"workspaces", memory.workspaces},
            {"copy_to_save_from", memory.copy},
            {"program", memory.program}}},
          {"batch",
           {{"sequences_per_step", size.sequences_per_step},
            {"tokens_per_step", finite_or_null(size.tokens_per_step())},
            {"micro_batch_tokens", size.micro_batch_tokens},
            {"largest_micro_batch_tokens", size.largest_micro_batch_tokens},
            {"largest_micro_batch_sequences", size.largest_micro_batch_tokens / std::max<int64_t>(1, size.longest)}}},
          {"disk",
           {{"checkpoint_bytes", disk.checkpoint},
            {"checkpoints", disk.kept},
            {"checkpoints_at_most_bytes", disk.at_most},
            {"cache_bytes", disk.cache},
            {"frozen_bytes", disk.other},
            {"free_bytes", whole_or_null(disk.free)}}},
          {"data",
           {{"sequences_per_epoch", size.sequences_per_epoch},
            {"tokens_per_epoch", size.tokens_per_epoch},
            {"longest", size.longest},
            {"steps_per_epoch", size.steps_per_epoch},
            {"steps", whole_above_zero_or_null(size.total_steps)}}}};
}

PlanJson json_of_times(const JobPlan& plan) {
  if (!plan.times) return {};
  const StepTimes& times = *plan.times;
  const double tokens = plan.size.tokens_per_step();
  return {{"precision", times.precision},
          {"layers_seconds", tokens * times.linear},
          {"attention_seconds", tokens * times.attention},
          {"head_seconds", tokens * times.head},
          {"rows_seconds", tokens * times.rows},
          {"other_seconds", tokens * times.other},
          {"update_seconds", times.update},
          {"evaluation_seconds", times.evaluation * plan.size.validation_tokens},
          {"save_seconds", times.save},
          {"start_up_seconds", times.start_up},
          {"spread", from_zero_or_null(times.spread)}};
}

PlanJson json_of_what_if(const JobPlan& plan) {
  PlanJson all = PlanJson::array();
  for (const Outlook& outlook : plan.what_if) {
    PlanJson one = {{"id", outlook.id}, {"change", outlook.change}, {"settings", outlook.settings}};
    one.update(json_of_outlook(outlook));
    one["network_bytes_per_step"] = above_zero_or_null(outlook.network_bytes_per_step);
    one["networks"] = PlanJson::array();
    for (const Outlook::OnNetwork& network : outlook.networks) {
      one["networks"].push_back({{"gigabits_per_second", network.gigabits_a_second},
                                 {"exposed_communication_seconds", network.exposed_seconds}});
    }
    const std::string command = command_that_checks(plan, outlook);
    one["command"] = command.empty() ? PlanJson() : PlanJson(command);
    all.push_back(one);
  }
  return all;
}

PlanJson json_of_shapes(const std::vector<ShapeForTime>& shapes) {
  PlanJson all = PlanJson::array();
  for (const ShapeForTime& shape : shapes) {
    all.push_back({{"seconds", shape.seconds},
                   {"layers", shape.layers},
                   {"width", shape.width},
                   {"parameters", shape.parameters},
                   {"tokens_per_second", finite_or_null(shape.tokens_per_second)},
                   {"tokens", finite_or_null(shape.tokens)},
                   {"epochs", finite_or_null(shape.epochs)},
                   {"data_is_short", shape.data_is_short}});
  }
  return all;
}

PlanJson json_of_models(const std::vector<ModelChoice>& models) {
  PlanJson all = PlanJson::array();
  for (const ModelChoice& model : models) {
    all.push_back({{"name", model.name},
                   {"download", model.download},
                   {"layers", model.layers},
                   {"width", model.width},
                   {"parameters", model.parameters},
                   {"flop_per_token", finite_or_null(model.flop_per_token)},
                   {"memory_bytes", model.memory_bytes},
                   {"model_bytes", model.model_bytes},
                   {"fits", model.fits},
                   {"tokens_per_second", above_zero_or_null(model.tokens_per_second)},
                   {"epoch_seconds", above_zero_or_null(model.epoch_seconds)},
                   {"basis", model.basis}});
  }
  return all;
}

PlanJson json_of_plan(const JobPlan& plan) {
  PlanJson json = {{"name", plan.name}, {"path", plan.path}};
  json.update(json_of_outlook(plan.outlook));
  json["precision"] = plan.precision;
  json["memory_available_bytes"] = std::max<int64_t>(0, plan.memory_available);
  json.update(json_of_size(plan.size));
  json["times"] = json_of_times(plan);
  json["here"] = plan.here ? json_of_outlook(*plan.here) : PlanJson();
  json["what_if"] = json_of_what_if(plan);
  json["shapes"] = json_of_shapes(plan.shapes);
  json["models"] = json_of_models(plan.models);
  json["notes"] = plan.notes;
  return json;
}

PlanJson json_of_comparison(const JobPlan& first, const JobPlan& second) {
  constexpr const char* kUnits[] = {"parameters", "FLOP", "bytes", "seconds", "tokens", "tokens/s"};
  PlanJson all = PlanJson::array();
  for (const ComparedFigure& figure : compared_figures(first, second)) {
    all.push_back({{"name", figure.name},
                   {"unit", kUnits[static_cast<size_t>(figure.kind)]},
                   {"first", from_zero_or_null(figure.first)},
                   {"second", from_zero_or_null(figure.second)},
                   {"ratio", from_zero_or_null(figure.ratio())}});
  }
  return all;
}

PlanJson schema_of_outlook() {
  return schema_of_object({{"parameters", schema_of_count()},
                           {"flop_per_token", schema_of_measure()},
                           {"memory_bytes", schema_of_count()},
                           {"fits", schema_of_flag()},
                           {"tokens_per_second", schema_of_measure()},
                           {"step_seconds", schema_of_measure()},
                           {"epoch_seconds", schema_with_words(schema_of_measure(), "evaluations and saves included")},
                           {"run_seconds", schema_of_measure()},
                           {"disk_bytes", schema_with_words(schema_of_count(), "when the run is over")},
                           {"ranks", schema_of_count()},
                           {"part_seconds", schema_with_words(schema_of_measure(),
                                                              "one rank's part of a step, alone, with the "
                                                              "update of the whole model")},
                           {"exposed_communication_seconds", schema_with_words(schema_of_measure(), "of a step")},
                           {"basis", schema_with_words(schema_of_text(), "what the times rest on")}});
}

// Both have an object's properties.
PlanJson schema_with(PlanJson schema, const PlanJson& more) {
  schema["properties"].update(more["properties"]);
  for (const PlanJson& key : more["required"]) schema["required"].push_back(key);
  return schema;
}

PlanJson schema_of_size() {
  const PlanJson component = schema_of_object(
      {{"name", schema_of_text()}, {"parameters", schema_of_count()}, {"flop_per_token", schema_of_measure()}});
  const PlanJson memory = schema_of_object({{"weights", schema_of_count()},
                                            {"gradients", schema_of_count()},
                                            {"optimizer", schema_of_count()},
                                            {"activations", schema_of_count()},
                                            {"evaluation", schema_of_count()},
                                            {"workspaces", schema_of_count()},
                                            {"copy_to_save_from", schema_of_count()},
                                            {"program", schema_of_count()}});
  const PlanJson batch = schema_of_object({{"sequences_per_step", schema_of_measure()},
                                           {"tokens_per_step", schema_of_measure()},
                                           {"micro_batch_tokens", schema_of_count()},
                                           {"largest_micro_batch_tokens", schema_of_count()},
                                           {"largest_micro_batch_sequences", schema_of_count()}});
  const PlanJson disk = schema_of_object({{"checkpoint_bytes", schema_of_count()},
                                          {"checkpoints", schema_of_count()},
                                          {"checkpoints_at_most_bytes", schema_of_count()},
                                          {"cache_bytes", schema_of_count()},
                                          {"frozen_bytes", schema_of_count()},
                                          {"free_bytes", schema_of_bytes()}});
  const PlanJson data = schema_of_object({{"sequences_per_epoch", schema_of_measure()},
                                          {"tokens_per_epoch", schema_of_measure()},
                                          {"longest", schema_of_count()},
                                          {"steps_per_epoch", schema_of_count()},
                                          {"steps", schema_of_bytes()}});
  return schema_of_object({{"trained_parameters", schema_of_count()},
                           {"components", schema_of_list(component)},
                           {"memory", memory},
                           {"batch", batch},
                           {"disk", disk},
                           {"data", data}});
}

PlanJson schema_of_times() {
  return schema_or_null(schema_of_object({{"precision", schema_of_text()},
                                          {"layers_seconds", schema_of_measure()},
                                          {"attention_seconds", schema_of_measure()},
                                          {"head_seconds", schema_of_measure()},
                                          {"rows_seconds", schema_of_measure()},
                                          {"other_seconds", schema_of_measure()},
                                          {"update_seconds", schema_of_measure()},
                                          {"evaluation_seconds", schema_of_measure()},
                                          {"save_seconds", schema_of_measure()},
                                          {"start_up_seconds", schema_of_measure()},
                                          {"spread", schema_of_measure()}}));
}

PlanJson schema_of_plan() {
  const PlanJson network = schema_of_object(
      {{"gigabits_per_second", schema_of_measure()}, {"exposed_communication_seconds", schema_of_measure()}});
  const PlanJson what_if = schema_with(schema_of_object({{"id", schema_of_text()},
                                                         {"change", schema_of_text()},
                                                         {"settings", schema_of_texts()},
                                                         {"network_bytes_per_step", schema_of_measure()},
                                                         {"networks", schema_of_list(network)},
                                                         {"command", schema_of_text_or_null()}}),
                                       schema_of_outlook());
  const PlanJson shape = schema_of_object({{"seconds", schema_of_measure()},
                                           {"layers", schema_of_count()},
                                           {"width", schema_of_count()},
                                           {"parameters", schema_of_count()},
                                           {"tokens_per_second", schema_of_measure()},
                                           {"tokens", schema_of_measure()},
                                           {"epochs", schema_of_measure()},
                                           {"data_is_short", schema_of_flag()}});
  const PlanJson model = schema_of_object({{"name", schema_of_text()},
                                           {"download", schema_of_text()},
                                           {"layers", schema_of_count()},
                                           {"width", schema_of_count()},
                                           {"parameters", schema_of_count()},
                                           {"flop_per_token", schema_of_measure()},
                                           {"memory_bytes", schema_of_count()},
                                           {"model_bytes", schema_of_count()},
                                           {"fits", schema_of_flag()},
                                           {"tokens_per_second", schema_of_measure()},
                                           {"epoch_seconds", schema_of_measure()},
                                           {"basis", schema_of_text()}});
  const PlanJson rest = schema_of_object({{"name", schema_of_text()},
                                          {"path", schema_of_text()},
                                          {"precision", schema_of_text()},
                                          {"memory_available_bytes", schema_of_count()},
                                          {"times", schema_of_times()},
                                          {"here", schema_or_null(schema_of_outlook())},
                                          {"what_if", schema_of_list(what_if)},
                                          {"shapes", schema_of_list(shape)},
                                          {"models", schema_of_list(model)},
                                          {"notes", schema_of_texts()}});
  return schema_with(schema_with(rest, schema_of_outlook()), schema_of_size());
}

}  // namespace

std::string planning_json(const Planning& planning) {
  PlanJson json = json_of_plan(planning.jobs.front());
  json["machine"] = json_of_rates(planning.other ? *planning.other : planning.here);
  json["measured_on"] = json_of_rates(planning.here);
  const bool both = planning.jobs.size() > 1;
  json["other"] = both ? json_of_plan(planning.jobs[1]) : PlanJson();
  json["comparison"] = both ? json_of_comparison(planning.jobs[0], planning.jobs[1]) : PlanJson();
  json["seconds"] = finite_or_null(planning.seconds);
  return json.dump(2, ' ', false, PlanJson::error_handler_t::replace);
}

std::string planning_schema() {
  const PlanJson machine = schema_of_object(
      {{"file", schema_of_text_or_null()},
       {"name", schema_of_text()},
       {"cores", schema_of_count()},
       {"on_gpu", schema_of_flag()},
       {"memory_bytes", schema_of_count()},
       {"product_gflops", schema_of_object({{"fp32", schema_of_measure()}, {"bf16", schema_of_measure()}})},
       {"memory_gb_per_second", schema_of_measure()}});
  const PlanJson figure = schema_of_object({{"name", schema_of_text()},
                                            {"unit", schema_of_text()},
                                            {"first", schema_of_measure()},
                                            {"second", schema_of_measure()},
                                            {"ratio", schema_of_measure()}});
  PlanJson list = schema_of_list(figure);
  PlanJson schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "What brisk plan --json writes"}};
  schema.update(schema_with(schema_of_plan(), schema_of_object({{"machine", machine},
                                                                {"measured_on", machine},
                                                                {"other", schema_or_null(schema_of_plan())},
                                                                {"comparison", schema_or_null(list)},
                                                                {"seconds", schema_of_measure()}})));
  return schema.dump(2) + "\n";
}

}  // namespace brisk
