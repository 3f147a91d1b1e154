#include "hub/weight_map.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/text/printable.h"
#include "tensor/dtype.h"
#include "tensor/half_float.h"

namespace brisk {

namespace {

// Where output `row` of ours stands among those of the other program.
int64_t row_there(const WeightPart& part, int64_t row) {
  const int64_t width = part.split_head_width;
  if (width == 0) return row;
  const int64_t head = row / width, inside = row % width;
  return head * width + (inside % 2) * (width / 2) + inside / 2;
}

bool has_same_order(const WeightPart& part) { return !part.transposed && part.split_head_width == 0; }

// The index there of each element of ours, in our order.
template <typename Visit>
void for_each_element(const WeightPart& part, Visit&& visit) {
  const int64_t inputs = part.inputs > 0 ? part.inputs : 1;
  int64_t ours = 0;
  for (int64_t row = 0; row < part.outputs; ++row) {
    const int64_t there = row_there(part, row);
    for (int64_t col = 0; col < inputs; ++col) {
      visit(ours++, part.transposed ? col * part.outputs + there : there * inputs + col);
    }
  }
}

std::vector<float> read_floats(const SafetensorsEntry& entry) {
  std::vector<float> values(static_cast<size_t>(entry.count()));
  if (entry.type == SafetensorsType::f32) {
    std::memcpy(values.data(), entry.data, static_cast<size_t>(entry.bytes));
    return values;
  }
  const auto* bytes = static_cast<const std::byte*>(entry.data);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, 2);
    values[i] = entry.type == SafetensorsType::bf16 ? to_float(bf16_t{bits}) : half_to_float(bits);
  }
  return values;
}

bool is_readable(SafetensorsType type) {
  return type == SafetensorsType::f32 || type == SafetensorsType::f16 || type == SafetensorsType::bf16;
}

// A vector may also be stored as a matrix of one row.
bool has_shape(const SafetensorsEntry& entry, const WeightPart& part) {
  if (entry.shape == part.shape()) return true;
  return part.inputs == 0 && entry.shape == std::vector<int64_t>{1, part.outputs};
}

void check_part(const WeightPart& part, const WeightSource& source) {
  if (part.name.empty()) return;
  const SafetensorsEntry* entry = source.find(part.name);
  if (entry == nullptr) {
    user_error("{}: it has no tensor '{}' ([{}]), which its configuration asks for; fetch the checkpoint again",
               source.path, part.name, fmt::join(part.shape(), ", "));
  }
  if (!has_shape(*entry, part)) {
    user_error(
        "{}: '{}' has the shape [{}], but its configuration asks for [{}]; configuration and weights are of two "
        "models: fetch both again",
        source.path, part.name, fmt::join(entry->shape, ", "), fmt::join(part.shape(), ", "));
  }
  if (!is_readable(entry->type)) {
    user_error("{}: '{}' is {}; brisk reads weights in F32, F16 and BF16: convert the checkpoint", source.path,
               part.name, safetensors_type_name(entry->type));
  }
}

const Parameter& parameter_of(const WeightMap& entry, const ParameterStore& store) {
  const Parameter* parameter = store.find(entry.parameter);
  BRISK_CHECK(parameter != nullptr, "the model has no {}", entry.parameter);
  int64_t count = 0;
  for (const WeightPart& part : entry.parts) count += part.count();
  BRISK_CHECK(count == parameter->count(), "{}: {} numbers for {}", entry.parameter, count, parameter->count());
  return *parameter;
}

std::vector<std::byte> encode(const std::vector<float>& values, SafetensorsType type, const std::string& name) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(type)));
  if (type == SafetensorsType::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = type == SafetensorsType::bf16 ? to_bf16(values[i]).bits : float_to_half(values[i]);
    if (type == SafetensorsType::f16 && std::isfinite(values[i]) && (bits & 0x7FFFu) == 0x7C00u) {
      user_error("'{}' holds {}, more than fp16 can represent (65504): export with --precision bf16 or fp32", name,
                 values[i]);
    }
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

// The parameter from `first` on becomes `entry`; zeros where there is none.
void fill(const ParameterStore& store, const Parameter& parameter, int64_t first, const WeightPart& part,
          const SafetensorsEntry* entry) {
  if (entry != nullptr && entry->type == SafetensorsType::f32 && has_same_order(part) && parameter.master) {
    store.device().copy_in(parameter.master.f32() + first, entry->data, part.count() * size_of(DType::f32));
    return;
  }
  std::vector<float> ours(static_cast<size_t>(part.count()), 0.0f);
  if (entry != nullptr) {
    const std::vector<float> theirs = read_floats(*entry);
    for_each_element(part, [&](int64_t here, int64_t there) {
      ours[static_cast<size_t>(here)] = theirs[static_cast<size_t>(there)];
    });
  }
  store.write(parameter, first, ours);
}

}  // namespace

std::vector<int64_t> WeightPart::shape() const {
  if (!shape_there.empty()) return shape_there;
  if (inputs == 0) return {outputs};
  return transposed ? std::vector<int64_t>{inputs, outputs} : std::vector<int64_t>{outputs, inputs};
}

void check_weights(const std::vector<WeightMap>& map, const WeightSource& source) {
  for (const WeightMap& entry : map) {
    for (const WeightPart& part : entry.parts) check_part(part, source);
  }
}

void check_layers(const std::vector<std::string>& names, const std::string& before, int64_t layers,
                  const std::string& path) {
  for (const std::string& name : names) {
    if (!name.starts_with(before)) continue;
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(name.data() + before.size(), name.data() + name.size(), layer);
    if (error != std::errc() || end == name.data() + name.size() || *end != '.' || layer < layers) continue;
    user_error(
        "{}: its configuration has {} layers, but the weights have '{}' of a further one; configuration and weights "
        "are of two models: fetch both again",
        path, layers, printable(name));
  }
}

void load_weights(const std::vector<WeightMap>& map, const WeightSource& source, ParameterStore& store,
                  const std::set<std::string>& except) {
  check_weights(map, source);
  std::set<std::string> filled;
  std::vector<const SafetensorsEntry*> tensors;
  for (const WeightMap& entry : map) {
    parameter_of(entry, store);
    filled.insert(entry.parameter);
    for (const WeightPart& part : entry.parts) {
      if (!part.name.empty()) tensors.push_back(source.find(part.name));
    }
  }
  if (source.nonfinite == NonFinite::refuse) check_finite(source.path, tensors);
  for (const auto& parameter : store.all()) {
    if (parameter->spec.adapter || except.contains(parameter->spec.name)) continue;
    BRISK_CHECK(filled.contains(parameter->spec.name), "nothing fills {}", parameter->spec.name);
  }
  for (const WeightMap& entry : map) {
    const Parameter& parameter = parameter_of(entry, store);
    int64_t first = 0;
    for (const WeightPart& part : entry.parts) {
      fill(store, parameter, first, part, part.name.empty() ? nullptr : source.find(part.name));
      first += part.count();
    }
  }
}

std::vector<StoredTensor> stored_tensors(const WeightMap& entry, const ParameterStore& store, SafetensorsType type) {
  const Parameter* parameter = store.find(entry.parameter);
  if (parameter != nullptr) parameter_of(entry, store);
  std::vector<StoredTensor> tensors;
  int64_t offset = 0;
  for (const WeightPart& part : entry.parts) {
    BRISK_CHECK(!part.name.empty(), "{} has a part without a name", entry.parameter);
    const auto make = [part, parameter, offset, type, &device = store.device()] {
      std::vector<float> ours(static_cast<size_t>(part.count()), 0.0f), theirs(ours.size());
      if (parameter != nullptr) {
        device.copy_out(ours.data(), static_cast<const std::byte*>(parameter->master.data) + offset,
                        part.count() * size_of(DType::f32));
      }
      for_each_element(part, [&](int64_t here, int64_t there) {
        theirs[static_cast<size_t>(there)] = ours[static_cast<size_t>(here)];
      });
      return encode(theirs, type, part.name);
    };
    tensors.push_back({part.name, type, part.shape(), make, {}});
    if (parameter != nullptr && has_same_order(part)) {
      const auto* first = static_cast<const std::byte*>(parameter->master.data) + offset;
      tensors.back().block = [first, type, name = part.name, &device = store.device()](int64_t begin,
                                                                                       std::span<std::byte> block) {
        const int64_t size = size_of(type);
        BRISK_CHECK(begin % size == 0 && std::ssize(block) % size == 0, "{}: block of {}", name, block.size());
        std::vector<float> values(block.size() / static_cast<size_t>(size));
        device.copy_out(values.data(), first + begin / size * size_of(DType::f32),
                        std::ssize(values) * size_of(DType::f32));
        const std::vector<std::byte> bytes = encode(values, type, name);
        std::memcpy(block.data(), bytes.data(), bytes.size());
      };
    }
    offset += part.count() * size_of(DType::f32);
  }
  return tensors;
}

SafetensorsWriter::Fill fill_from(const StoredTensor& tensor) {
  if (tensor.block) return tensor.block;
  const auto made = std::make_shared<std::vector<std::byte>>();
  return [tensor, made](int64_t offset, std::span<std::byte> block) {
    if (offset == 0) *made = tensor.bytes();
    std::memcpy(block.data(), made->data() + offset, block.size());
    if (offset + std::ssize(block) == std::ssize(*made)) *made = {};
  };
}

}  // namespace brisk
