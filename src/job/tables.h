// The tables of architectures and tasks, as far as a job knows them: the values of model.type and task, and the traits by
// which options and messages tell them apart. job/architectures.def and job/tasks.def have the entries; the classes behind
// them come from the same lists (infer/architecture/architectures.cpp, train/task/tasks.cpp).
//
//   if (traits_of_task(job.task).has_labels) ...
//   for (const ArchitectureTraits& architecture : all_architectures()) ...
#pragma once

#include <string>
#include <vector>

namespace brisk {

class Option;
struct Job;

struct ArchitectureTraits {
  std::vector<std::string> types;  // values of model.type
  bool is_encoder = false;         // its rows see the rows after them, too; ...
  bool is_encoder_decoder =
      false;                  // ... or it reads one text and writes another; otherwise a decoder, which continues text
  bool reads_images = false;  // in place of texts
  bool fixed_layers = false;  // width, heads and the like are its own: a job decides how many layers, and no more
  // Declares options of its own, and defaults of others; null: it has none.
  void (*declare_options)(Job& job, std::vector<Option>& all) = nullptr;
};

const std::vector<ArchitectureTraits>& all_architectures();
// In all_architectures(), the one with this model.type; -1: there is none.
int architecture_with(const std::string& type);
bool has_fixed_layers(const std::string& type);  // by its traits
bool reads_images(const std::string& type);      // likewise

struct TaskTraits {
  std::string name;
  std::string model;                    // what it trains, in messages: "a classifier"
  std::string targets;                  // what its metrics are of: "tokens"
  bool has_labels = false;              // learns the class of each text
  bool masks_tokens = false;            // predicts tokens that are hidden from the model
  bool trains_encoder = false;          // or ...
  bool trains_encoder_decoder = false;  // ... that; otherwise a decoder
  bool reads_texts = true;              // ...
  bool reads_images = false;            // ... or these, or, of two that are true, what the model reads
  bool predicts_tokens = false;         // so that its metrics depend on the tokenizer
};

const std::vector<TaskTraits>& all_tasks();
const TaskTraits* find_task_traits(const std::string& task);  // nullptr: there is no such task
const TaskTraits& traits_of_task(const std::string& task);

// Whether texts are read or written, so that there is a tokenizer: not by a classifier of images.
bool has_texts(const TaskTraits& task, const std::string& type);
bool trains_type(const TaskTraits& task, const std::string& type);
// The values of model.type that a task trains, and the tasks that train a model.type.
std::vector<std::string> types_for_task(const std::string& task);
std::vector<std::string> tasks_for_type(const std::string& type);

// "bert, distilbert or roberta"
std::string alternatives(const std::vector<std::string>& words);

}  // namespace brisk
