#include "tensor/parameter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/runtime.h"

namespace brisk {

namespace {

// A parameter starts on a cache line, so that no two threads or shards share one.
constexpr int64_t kElementAlignment = 16;

int64_t aligned(int64_t count) { return (count + kElementAlignment - 1) / kElementAlignment * kElementAlignment; }

bool has_second_moment(const ParameterSpec& spec, ParameterStore::Moments moments) {
  return spec.trained && (moments == ParameterStore::Moments::two || !spec.hidden);
}

bool has_master(const ParameterSpec& spec, ParameterStore::Masters masters) {
  return masters == ParameterStore::Masters::all || !(spec.hidden && spec.multiplies && spec.trained);
}

// Where the first element of a flat array would lie of which the buffer has those from this one on.
char* before(const Buffer& buffer, int64_t first) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(buffer.data()) -
                                 static_cast<uintptr_t>(first * size_of(DType::f32)));
}

uint64_t name_key(std::string_view name) {
  uint64_t hash = 1469598103934665603ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

void fill_sinusoids(const ParameterSpec& spec, bool interleaved, std::vector<float>& values) {
  const int64_t pairs = spec.cols / 2;
  BRISK_CHECK(2 * pairs == spec.cols, "{}: {} columns are no pairs of a sine and a cosine", spec.name, spec.cols);
  for (int64_t row = 0; row < spec.rows; ++row) {
    float* out = values.data() + row * spec.cols;
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle =
          static_cast<double>(row) / std::pow(10000.0, static_cast<double>(2 * i) / static_cast<double>(spec.cols));
      out[interleaved ? 2 * i : i] = static_cast<float>(std::sin(angle));
      out[interleaved ? 2 * i + 1 : pairs + i] = static_cast<float>(std::cos(angle));
    }
  }
}

}  // namespace

Parameter* ParameterStore::add(ParameterSpec spec) {
  BRISK_CHECK(find(spec.name) == nullptr, "parameter {} is declared twice", spec.name);
  auto parameter = std::make_unique<Parameter>();
  parameter->spec = std::move(spec);
  parameter->index = static_cast<int64_t>(parameters_.size());
  parameters_.push_back(std::move(parameter));
  Parameter* added = parameters_.back().get();
  by_name_.emplace(added->spec.name, added);
  return added;
}

Parameter* ParameterStore::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second : nullptr;
}

void ParameterStore::allocate(Device& device, const std::vector<Parameter*>& order, DType compute_type, Purpose purpose,
                              Moments moments, Masters masters, bool with_moments) {
  BRISK_CHECK(masters == Masters::all || compute_type == DType::bf16, "weights without masters are bf16");
  device_ = &device;
  masters_ = masters;
  compute_type_ = compute_type;
  purpose_ = purpose;
  order_ = order;
  for (const auto& parameter : parameters_) {
    if (std::find(order_.begin(), order_.end(), parameter.get()) == order_.end()) order_.push_back(parameter.get());
  }
  std::stable_partition(order_.begin(), order_.end(), [](const Parameter* p) { return p->spec.trained; });
  flat_count_ = trained_flat_count_ = second_moment_count_ = master_count_ = 0;
  std::vector<int64_t> master_offsets;
  second_moment_offsets_.clear();
  moments_ = moments;
  for (Parameter* parameter : order_) {
    parameter->offset = flat_count_;
    flat_count_ += aligned(parameter->count());
    if (parameter->spec.trained) trained_flat_count_ = flat_count_;
    master_offsets.push_back(master_count_);
    if (has_master(parameter->spec, masters)) master_count_ += aligned(parameter->count());
    second_moment_offsets_.push_back(second_moment_count_);
    if (has_second_moment(parameter->spec, moments)) second_moment_count_ += aligned(parameter->count());
  }
  master_ = Buffer(device, master_count_ * size_of(DType::f32));
  if (purpose == Purpose::training) gradient_ = Buffer(device, trained_flat_count_ * size_of(DType::f32));
  if (compute_type != DType::f32) copy_ = Buffer(device, flat_count_ * size_of(compute_type));
  for (size_t i = 0; i < order_.size(); ++i) {
    Parameter* parameter = order_[i];
    const auto view = [&](const Buffer& buffer, DType type, int64_t offset) {
      if (!buffer) return Tensor{};
      return matrix(static_cast<char*>(buffer.data()) + offset * size_of(type), type, parameter->spec.rows,
                    parameter->spec.cols);
    };
    const bool trained = parameter->spec.trained;
    parameter->master = has_master(parameter->spec, masters) ? view(master_, DType::f32, master_offsets[i]) : Tensor{};
    parameter->gradient = trained ? view(gradient_, DType::f32, parameter->offset) : Tensor{};
    parameter->first_moment = parameter->second_moment = {};
    parameter->copy = view(copy_, compute_type, parameter->offset);
    parameter->compute = copy_ && parameter->spec.multiplies ? parameter->copy : parameter->master;
  }
  if (purpose == Purpose::training && with_moments) allocate_moments(0, trained_flat_count_);
}

int64_t ParameterStore::place_of(int64_t element, const Tensor& some, Tensor Parameter::*of_parameter) const {
  for (const Parameter* parameter : order_) {
    const Tensor& numbers = parameter->*of_parameter;
    if (!numbers || parameter->offset + aligned(parameter->count()) <= element) continue;
    return numbers.f32() - some.f32() + std::max<int64_t>(0, element - parameter->offset);
  }
  return some.cols;
}

void ParameterStore::allocate_moments(int64_t begin, int64_t end) {
  BRISK_CHECK(begin <= end, "moments from {} to {}", begin, end);
  begin = begin / kElementAlignment * kElementAlignment;  // so that parameters begin on a cache line here, too
  end = aligned(end);
  // Of the array of second moments, which has fewer elements: the place of this one of the others.
  const auto second_place = [&](int64_t element) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const Parameter& parameter = *order_[i];
      if (!has_second_moment(parameter.spec, moments_) || parameter.offset + aligned(parameter.count()) <= element)
        continue;
      return second_moment_offsets_[i] + std::max<int64_t>(0, element - parameter.offset);
    }
    return second_moment_count_;
  };
  const auto allocate = [&](Buffer& buffer, int64_t first, int64_t last) {
    buffer = Buffer();
    buffer = Buffer(*device_, std::max<int64_t>(1, last - first) * size_of(DType::f32));
  };
  first_moment_begin_ = begin;
  allocate(first_moment_, begin, end);
  second_moment_begin_ = second_place(begin);
  if (second_moment_count_ > 0) allocate(second_moment_, second_moment_begin_, second_place(end));
  for (size_t i = 0; i < order_.size(); ++i) {
    Parameter& parameter = *order_[i];
    const auto view = [&](const Tensor& all, int64_t place) {
      return matrix(all.f32() + place, DType::f32, parameter.spec.rows, parameter.spec.cols);
    };
    parameter.first_moment = parameter.spec.trained ? view(flat_first_moment(), parameter.offset) : Tensor{};
    parameter.second_moment =
        has_second_moment(parameter.spec, moments_) ? view(flat_second_moment(), second_moment_offsets_[i]) : Tensor{};
  }
}

void ParameterStore::initialise(uint64_t seed) {
  for (const auto& parameter : parameters_) initialise(*parameter, seed);
}

void ParameterStore::initialise(const Parameter& parameter, uint64_t seed) {
  std::vector<float> values;
  const Initial& initial = parameter.spec.initial;
  values.assign(static_cast<size_t>(parameter.count()), initial.kind == Initial::Kind::ones ? 1.0f : 0.0f);
  const auto deviation = static_cast<float>(initial.deviation), mean = static_cast<float>(initial.mean);
  if (initial.kind == Initial::Kind::uniform) {
    const uint64_t key = random_key({seed, name_key(parameter.spec.name)});
    thread_pool().for_range(parameter.count(), 1024, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const double drawn = 2 * random_uniform(key, static_cast<uint64_t>(i)) - 1;
        values[static_cast<size_t>(i)] = mean + deviation * static_cast<float>(drawn);
      }
    });
  }
  if (initial.kind == Initial::Kind::normal) {
    const uint64_t key = random_key({seed, name_key(parameter.spec.name)});
    thread_pool().for_range(parameter.count(), 1024, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i += 2) {
        const NormalPair pair = random_normal_pair(key, static_cast<uint64_t>(i / 2));
        values[static_cast<size_t>(i)] = mean + deviation * pair.first;
        if (i + 1 < end) values[static_cast<size_t>(i + 1)] = mean + deviation * pair.second;
      }
    });
  }
  if (initial.kind == Initial::Kind::sinusoids || initial.kind == Initial::Kind::interleaved_sinusoids) {
    fill_sinusoids(parameter.spec, initial.kind == Initial::Kind::interleaved_sinusoids, values);
  }
  write(parameter, 0, values);
}

void ParameterStore::read(const Parameter& parameter, int64_t first, std::span<float> numbers) const {
  const int64_t count = std::ssize(numbers);
  BRISK_CHECK(first >= 0 && first + count <= parameter.count(), "{} numbers from {} on of {}", count, first,
              parameter.spec.name);
  if (parameter.master) {
    return device_->copy_out(numbers.data(), parameter.master.f32() + first, count * size_of(DType::f32));
  }
  std::vector<bf16_t> rounded(numbers.size());
  device_->copy_out(rounded.data(), parameter.copy.bf16() + first, count * size_of(DType::bf16));
  std::transform(rounded.begin(), rounded.end(), numbers.begin(), [](bf16_t value) { return to_float(value); });
}

void ParameterStore::write(const Parameter& parameter, int64_t first, std::span<const float> numbers) const {
  const int64_t count = std::ssize(numbers);
  BRISK_CHECK(first >= 0 && first + count <= parameter.count(), "{} numbers from {} on of {}", count, first,
              parameter.spec.name);
  if (parameter.master) {
    return device_->copy_in(parameter.master.f32() + first, numbers.data(), count * size_of(DType::f32));
  }
  std::vector<bf16_t> rounded(numbers.size());
  std::transform(numbers.begin(), numbers.end(), rounded.begin(), to_bf16);
  device_->copy_in(parameter.copy.bf16() + first, rounded.data(), count * size_of(DType::bf16));
}

int64_t ParameterStore::count() const {
  int64_t sum = 0;
  for (const auto& parameter : parameters_) sum += parameter->count();
  return sum;
}

int64_t ParameterStore::trained_count() const {
  int64_t sum = 0;
  for (const auto& parameter : parameters_) sum += parameter->spec.trained ? parameter->count() : 0;
  return sum;
}

namespace {
Tensor flat(const Buffer& buffer, DType type, int64_t count, int64_t has_from = 0) {
  if (!buffer) return {};
  return matrix(has_from == 0 ? buffer.data() : before(buffer, has_from), type, 1, count);
}
}  // namespace

Tensor ParameterStore::flat_master() const { return flat(master_, DType::f32, master_count_); }
Tensor ParameterStore::flat_gradient() const { return flat(gradient_, DType::f32, trained_flat_count_); }
Tensor ParameterStore::flat_first_moment() const {
  return flat(first_moment_, DType::f32, trained_flat_count_, first_moment_begin_);
}
Tensor ParameterStore::flat_second_moment() const {
  return flat(second_moment_, DType::f32, second_moment_count_, second_moment_begin_);
}
Tensor ParameterStore::flat_copy() const { return flat(copy_, compute_type_, flat_count_); }

ParameterStore::Bytes ParameterStore::byte_parts(DType compute_type, Purpose purpose, Moments moments,
                                                 Masters masters) const {
  Bytes sum;
  for (const auto& parameter : parameters_) {
    const int64_t elements = aligned(parameter->count()), floats = elements * size_of(DType::f32);
    if (has_master(parameter->spec, masters)) sum.masters += floats;
    if (compute_type != DType::f32) sum.copies += elements * size_of(compute_type);
    if (purpose != Purpose::training || !parameter->spec.trained) continue;
    sum.gradients += floats;
    sum.moments += floats * (has_second_moment(parameter->spec, moments) ? 2 : 1);
  }
  return sum;
}

}  // namespace brisk
