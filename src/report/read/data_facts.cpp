#include "report/read/data_facts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "base/parse_json.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// The value at the end of a path of keys; null where it breaks off.
const Json& at(const Json& json, std::initializer_list<const char*> keys) {
  static const Json kNothing;
  const Json* place = &json;
  for (const char* key : keys) {
    if (!place->is_object() || !place->contains(key)) return kNothing;
    place = &(*place)[key];
  }
  return *place;
}

// A count, or a mean of counts.
double figure(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  const double number = value.is_number() ? value.get<double>() : kUnknown;
  return number >= 0 && std::isfinite(number) ? number : kUnknown;
}

}  // namespace

DataFacts read_data_facts(const std::string& path, std::vector<std::string>& notes) {
  DataFacts data;
  if (!file_exists(path)) return data;
  const Json json = parse_json_or_discard<Json>(read_file(path, file_kind::summary));
  for (const char* unit : {"documents", "examples"}) {
    if (std::isfinite(figure(json, {unit}))) data.unit = unit;
  }
  if (data.empty()) {
    notes.push_back(fmt::format("{}: it counts neither documents nor examples; ignored", path));
    return data;
  }
  data.count = figure(json, {data.unit.c_str()});
  data.tokens_per_epoch = figure(json, {"tokens_per_epoch"});
  data.max_length = figure(json, {"max_length"});
  data.shortest = figure(json, {"length", "min"});
  data.median = figure(json, {"length", "median"});
  data.mean = figure(json, {"length", "mean"});
  data.percentile_95 = figure(json, {"length", "percentile_95"});
  data.longest = figure(json, {"length", "max"});
  data.sequences = figure(json, {"sequences"});
  data.split = figure(json, {"documents_split"});
  data.truncated = figure(json, {"truncated"});
  data.tokens_cut = figure(json, {"tokens_cut"});
  data.copies = figure(json, {data.unit == "documents" ? "duplicates" : "copies"});
  if (std::isnan(data.copies)) data.copies = figure(json, {"duplicates", "documents"});
  data.contradictions = figure(json, {"contradictions"});
  data.shared_with_validation = figure(json, {"validation_shared_with_train", "documents"});
  data.tokens_per_step = figure(json, {"packing", "tokens_per_step"});
  constexpr size_t kMost = 64;  // a length is below 2^64
  for (const Json& item : at(json, {"histogram"})) {
    const DataFacts::Lengths lengths = {figure(item, {"from"}), figure(item, {"to"}),
                                        figure(item, {data.unit.c_str()})};
    if (std::isfinite(lengths.from + lengths.to + lengths.count) && data.lengths.size() < kMost)
      data.lengths.push_back(lengths);
  }
  for (const Json& item : at(json, {"classes"})) {
    const Json& name = at(item, {"name"});
    const double examples = figure(item, {"examples"});
    if (name.is_string() && std::isfinite(examples)) data.classes.emplace_back(name.get<std::string>(), examples);
  }
  return data;
}

}  // namespace brisk
