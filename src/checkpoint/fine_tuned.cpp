#include "checkpoint/fine_tuned.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "checkpoint/checkpoint.h"
#include "hub/formats/safetensors.h"

namespace brisk {

namespace {

void check_shape(const SafetensorsFile& file, const SafetensorsEntry& entry, int64_t rows, int64_t cols) {
  if (entry.type == SafetensorsType::f32 && entry.shape == std::vector<int64_t>{rows, cols}) return;
  user_error("{}: '{}' is {} [{}], expected F32 [{}, {}]; is it of this job?", file.path(), entry.name,
             safetensors_type_name(entry.type), fmt::join(entry.shape, ", "), rows, cols);
}

// values += scale B A
void add_product(std::vector<float>& values, int64_t rows, int64_t cols, const std::vector<float>& a,
                 const std::vector<float>& b, double scale) {
  const int64_t rank = std::ssize(a) / cols;
  thread_pool().for_range(rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = values.data() + row * cols;
      for (int64_t k = 0; k < rank; ++k) {
        const auto factor = static_cast<float>(scale * static_cast<double>(b[static_cast<size_t>(row * rank + k)]));
        const float* in = a.data() + k * cols;
        for (int64_t c = 0; c < cols; ++c) out[c] += factor * in[c];
      }
    }
  });
}

std::vector<float> floats_of(const SafetensorsEntry& entry) {
  std::vector<float> values(static_cast<size_t>(entry.count()));
  std::memcpy(values.data(), entry.data, static_cast<size_t>(entry.bytes));
  return values;
}

// The tensors of a checkpoint and of the frozen file next to it, each asked for once.
class WholeModel {
 public:
  explicit WholeModel(const std::string& checkpoint) : trained_(checkpoint + "/model.safetensors") {
    const std::string frozen = (std::filesystem::absolute(checkpoint) / "../..").lexically_normal() / kFrozenFile;
    if (file_exists(frozen)) frozen_ = std::make_unique<SafetensorsFile>(frozen);
  }

  // Checked, and nothing copied yet.
  const SafetensorsEntry& find(const std::string& name, int64_t rows, int64_t cols) {
    const SafetensorsFile* file = &trained_;
    const SafetensorsEntry* entry = trained_.find(name);
    if (entry == nullptr && frozen_) {
      file = frozen_.get();
      entry = frozen_->find(name);
    }
    if (entry == nullptr) {
      user_error("{}: it has no '{}', which the model has; is it a checkpoint of this job?", file->path(), name);
    }
    check_shape(*file, *entry, rows, cols);
    if (file == &trained_) used_.insert(name);
    return *entry;
  }

  bool has(const std::string& name) const { return trained_.find(name) != nullptr; }
  int64_t rank_of(const std::string& name) const {
    const std::vector<int64_t>& shape = trained_.find(name)->shape;
    return shape.empty() ? 0 : shape.front();
  }

  void check_all_used() const {
    for (const SafetensorsEntry& entry : trained_.entries()) {
      if (used_.contains(entry.name)) continue;
      user_error("{}: it has '{}', which the model does not have; is it a checkpoint of this job?", trained_.path(),
                 entry.name);
    }
  }

 private:
  SafetensorsFile trained_;
  std::unique_ptr<SafetensorsFile> frozen_;
  std::set<std::string> used_;
};

struct Adapted {
  const Parameter* parameter;
  const SafetensorsEntry *weight, *a, *b;  // a and b: none without an adapter
};

}  // namespace

int64_t save_frozen(const std::string& run, const ParameterStore& store) {
  if (store.trained_count() == store.count()) return 0;
  SafetensorsWriter writer(run + "/" + kFrozenFile);
  writer.add_metadata("format", "pt");
  for (const auto& parameter : store.all()) {
    if (parameter->spec.trained) continue;
    const auto* data = static_cast<const std::byte*>(parameter->master.data);
    writer.add(parameter->spec.name, SafetensorsType::f32, {parameter->spec.rows, parameter->spec.cols},
               [&device = store.device(), data](int64_t offset, std::span<std::byte> block) {
                 device.copy_out(block.data(), data + offset, std::ssize(block));
               });
  }
  return writer.finish();
}

void load_frozen(const std::string& run, ParameterStore& store) {
  if (store.trained_count() == store.count()) return;
  const std::string path = run + "/" + kFrozenFile;
  if (!file_exists(path)) {
    user_error("{}: no such file; the weights that this run does not train are in it: copy it back", path);
  }
  const SafetensorsFile file(path);
  for (const bool copies : {false, true}) {  // all checks before the first change
    for (const auto& parameter : store.all()) {
      if (parameter->spec.trained) continue;
      const SafetensorsEntry* entry = file.find(parameter->spec.name);
      if (entry == nullptr) user_error("{}: it has no '{}'; is it of this job?", path, parameter->spec.name);
      check_shape(file, *entry, parameter->spec.rows, parameter->spec.cols);
      if (copies) store.device().copy_in(parameter->master.data, entry->data, entry->bytes);
    }
  }
}

namespace {

std::vector<Adapted> find_whole_model(WholeModel& model, const ParameterStore& store) {
  std::vector<Adapted> found;
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    if (spec.adapter) continue;
    Adapted adapted{parameter.get(), &model.find(spec.name, spec.rows, spec.cols), nullptr, nullptr};
    const std::string adapter = spec.name.substr(0, spec.name.rfind('.')) + ".lora_";
    if (spec.name.ends_with(".weight") && model.has(adapter + "a.weight")) {
      const int64_t rank = model.rank_of(adapter + "a.weight");
      adapted.a = &model.find(adapter + "a.weight", rank, spec.cols);
      adapted.b = &model.find(adapter + "b.weight", spec.rows, rank);
    }
    found.push_back(adapted);
  }
  model.check_all_used();
  return found;
}

}  // namespace

void check_whole_model(const std::string& checkpoint, const ParameterStore& store) {
  WholeModel model(checkpoint);
  find_whole_model(model, store);
}

void load_whole_model(const std::string& checkpoint, ParameterStore& store, double adapter_scale, NonFinite nonfinite) {
  WholeModel model(checkpoint);
  const std::vector<Adapted> found = find_whole_model(model, store);
  check_model_bytes(checkpoint);
  if (nonfinite == NonFinite::refuse) {
    std::vector<const SafetensorsEntry*> tensors;
    for (const Adapted& adapted : found) {
      for (const SafetensorsEntry* entry : {adapted.weight, adapted.a, adapted.b}) {
        if (entry != nullptr) tensors.push_back(entry);
      }
    }
    check_finite(checkpoint, tensors);
  }
  for (const Adapted& adapted : found) {
    std::vector<float> values = floats_of(*adapted.weight);
    if (adapted.a == nullptr) {
      store.write(*adapted.parameter, 0, values);
      continue;
    }
    add_product(values, adapted.parameter->spec.rows, adapted.parameter->spec.cols, floats_of(*adapted.a),
                floats_of(*adapted.b), adapter_scale);
    store.write(*adapted.parameter, 0, values);
  }
}

}  // namespace brisk
