// What another program computed: parameters, batches, gradients and losses in a file of tests/golden.
//
//   const GoldenFile file("gpt");
//   file.integer("d_model");
//   file.load_parameters(store);      // each of them, and none in the file is left over
//   file.numbers("losses");
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "hub/formats/safetensors.h"
#include "support/tiny_job.h"

namespace brisk::testing {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) : file_(std::string(BRISK_GOLDEN) + "/" + name + ".safetensors") {}

  // The masters; compute copies are the caller's.
  void load_parameters(const ParameterStore& store) const {
    int64_t loaded = 0;
    for (const auto& parameter : store.all()) {
      put_values(store.device(), parameter->master, numbers("parameters/" + parameter->spec.name));
      loaded += parameter->count();
    }
    int64_t in_file = 0;
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (entry.name.starts_with("parameters/")) in_file += entry.count();
    }
    ASSERT_EQ(loaded, in_file);
  }

  std::vector<float> numbers(const std::string& name) const {
    const SafetensorsEntry* entry = file_.find(name);
    if (entry == nullptr || entry->type != SafetensorsType::f32) {
      ADD_FAILURE() << name << " is not in " << file_.path();
      return {};
    }
    std::vector<float> values(static_cast<size_t>(entry->count()));
    std::memcpy(values.data(), entry->data, static_cast<size_t>(entry->bytes));
    return values;
  }

  // Row `step` of a matrix, and how many rows it has.
  std::vector<int32_t> integers(const std::string& name, size_t step) const {
    const SafetensorsEntry* entry = file_.find(name);
    const auto width = entry->shape.at(1);
    const auto* first = static_cast<const int32_t*>(entry->data) + static_cast<int64_t>(step) * width;
    return {first, first + width};
  }
  size_t steps(const std::string& name) const { return static_cast<size_t>(file_.find(name)->shape.at(0)); }

  std::string text(const std::string& key) const { return file_.metadata().at(key); }
  int64_t integer(const std::string& key) const { return std::stoll(text(key)); }
  double number(const std::string& key) const { return std::stod(text(key)); }
  AdamWOptions adamw() const { return {number("beta1"), number("beta2"), number("epsilon"), number("weight_decay")}; }

 private:
  SafetensorsFile file_;
};

}  // namespace brisk::testing
