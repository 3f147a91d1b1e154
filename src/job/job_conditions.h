// Where an option of a job applies: conditions on its task, its model and other options, by name.
//
//   options.emplace_back("training.mlm_probability", ...).only_with(with_masked_tokens(job));
//
// Tasks are told apart by traits, so that a new task says what it is in one row of the table here and every option
// that fits it applies to it. A condition refers to `job`, as the options do.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "job/options/options.h"

namespace brisk {

struct TaskTraits {
  std::string name;
  std::string model;             // what it trains, in messages: "a classifier"
  std::string targets;           // what its metrics are of: "tokens"
  bool has_labels = false;       // learns the class of each text
  bool masks_tokens = false;     // predicts tokens that are hidden from the model
  bool trains_encoder = false;   // otherwise a decoder
  bool predicts_tokens = false;  // so that its metrics depend on the tokenizer
};

const std::vector<TaskTraits>& all_tasks();
const TaskTraits* find_task_traits(const std::string& task);  // nullptr: there is no such task
const TaskTraits& traits_of_task(const std::string& task);

// Of the task. `otherwise` says why it does not apply elsewhere.
Condition with_labels(const Job& job, const std::string& otherwise = "it has no classes");
Condition with_masked_tokens(const Job& job);
Condition with_encoder_task(const Job& job);

// Of the model.
Condition with_encoder(const Job& job, const std::string& otherwise);
Condition with_decoder(const Job& job, const std::string& otherwise);
Condition with_type(const Job& job, const std::string& type);
Condition with_source_model(const Job& job);  // model.from

// Of the training.
Condition with_optimizer(const Job& job, const std::string& optimizer);
Condition with_adapters(const Job& job);
Condition with_frozen_layers(const Job& job);
Condition with_teacher(const Job& job);
Condition with_validation(const Job& job);   // data to evaluate on
Condition with_evaluations(const Job& job);  // on that, or samples

}  // namespace brisk
