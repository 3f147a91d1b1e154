#include "infer/open/model_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text/plural.h"
#include "infer/open/model_source.h"

namespace brisk {

namespace {

struct Match {
  Parameter *ours, *theirs;
};

std::string shape_of(const Parameter& parameter) {
  return parameter.spec.rows == 1 ? fmt::format("{} numbers", parameter.spec.cols)
                                  : fmt::format("{} x {}", parameter.spec.rows, parameter.spec.cols);
}

Parameter* find_there(const ParameterStore& there, const ModelPart::Names& names, const std::string& rest) {
  for (const std::string& prefix : names.there) {
    if (Parameter* const found = there.find(prefix + rest)) return found;
  }
  return nullptr;
}

std::vector<Match> matches_of(const ModelPart& part, const ModelSource& source, const ParameterStore& ours,
                              const ParameterStore& there) {
  std::vector<Match> matches;
  std::set<std::string> read;
  for (const auto& parameter : ours.all()) {
    for (const ModelPart::Names& names : part.names) {
      if (!parameter->spec.name.starts_with(names.ours)) continue;
      Parameter* const found = find_there(there, names, parameter->spec.name.substr(names.ours.size()));
      const bool fits =
          found != nullptr && found->spec.rows == parameter->spec.rows && found->spec.cols == parameter->spec.cols;
      if (!fits) {
        user_error("{} = {}: {} is {} there and {} in the job's model; give the sizes that it was trained with",
                   part.option, source.place, parameter->spec.name, found == nullptr ? "not" : shape_of(*found),
                   shape_of(*parameter));
      }
      read.insert(found->spec.name);
      matches.push_back({parameter.get(), found});
      break;
    }
  }
  BRISK_CHECK(!matches.empty(), "{}: no parameter of the model is of this part", part.option);
  // What is left there of the same stack is a layer that the job's model has not.
  for (const auto& parameter : there.all()) {
    const std::string& name = parameter->spec.name;
    const size_t layer = name.find("layers.");
    if (layer == std::string::npos || read.contains(name)) continue;
    const bool of_part = std::any_of(
        read.begin(), read.end(), [&](const std::string& one) { return one.starts_with(name.substr(0, layer + 7)); });
    if (!of_part) continue;
    user_error("{} = {}: it has {}, and the job's model no such layer; give the sizes that it was trained with",
               part.option, source.place, name);
  }
  return matches;
}

}  // namespace

ModelPart image_encoder_part(const std::string& option, const std::string& path, const std::string& prefix) {
  std::vector<std::string> there = {prefix};
  if (prefix != "encoder.") there.emplace_back("encoder.");
  there.emplace_back();  // of a classifier of images, or of an encoder alone
  return {option, path, {{prefix, std::move(there)}}};
}

ModelPart text_decoder_part(const std::string& option, const std::string& path) {
  return {option,
          path,
          {{"target_embedding.", {"target_embedding.", "embedding."}}, {"decoder.", {"decoder."}}, {"head", {"head"}}}};
}

void check_model_parts(const std::vector<ModelPart>& parts, const ModelConfig& config) {
  if (parts.empty()) return;
  ParameterStore ours;
  const std::unique_ptr<Model> model = make_model(config, ours);
  for (const ModelPart& part : parts) {
    const ModelSource source = open_model_source(part.path);
    ParameterStore there;
    const std::unique_ptr<Model> other = make_model(source.config, there);
    matches_of(part, source, ours, there);
  }
}

std::vector<std::string> load_model_parts(const std::vector<ModelPart>& parts, ParameterStore& store,
                                          NonFinite nonfinite) {
  struct Opened {
    ModelSource source;
    ParameterStore store;
    std::unique_ptr<Model> model;
    std::vector<Match> matches;
  };
  std::vector<std::unique_ptr<Opened>> all;
  for (const ModelPart& part : parts) {
    Opened& one = *all.emplace_back(std::make_unique<Opened>());
    one.source = open_model_source(part.path);
    one.model = make_model(one.source.config, one.store);
    one.matches = matches_of(part, one.source, store, one.store);
  }
  std::vector<std::string> lines;
  std::vector<float> numbers;
  for (size_t i = 0; i < parts.size(); ++i) {
    Opened& one = *all[i];
    one.store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    one.source.load_into(one.store, nonfinite);
    int64_t count = 0;
    for (const auto& [ours, theirs] : one.matches) {
      numbers.resize(static_cast<size_t>(ours->count()));
      one.store.read(*theirs, 0, numbers);
      store.write(*ours, 0, numbers);
      count += ours->count();
    }
    lines.push_back(
        fmt::format("{}: {} ({}), {}", parts[i].option, one.source.place, one.source.kind, plural(count, "parameter")));
    all[i].reset();
  }
  return lines;
}

}  // namespace brisk
