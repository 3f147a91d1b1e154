#include "checkpoint/checkpoint_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

constexpr int64_t kCopyAlignment = 64;

// One tensor of each parameter that has it, under the parameter's name.
void add_tensors(std::vector<CheckpointTensor>& tensors, const ParameterStore& store, const std::string& prefix,
                 TensorOfParameter which, const FlatRange& own) {
  Device& device = store.device();
  for (const auto& parameter : store.all()) {
    if (!is_saved(*parameter, which)) continue;
    CheckpointTensor& tensor = tensors.emplace_back();
    tensor.name = prefix + parameter->spec.name;
    tensor.rows = parameter->spec.rows;
    tensor.cols = parameter->spec.cols;
    const FlatRange::Elements elements = own.of(*parameter);
    tensor.own_offset = elements.first * size_of(DType::f32);
    tensor.own_bytes = elements.count * size_of(DType::f32);
    if (which == &Parameter::master && !parameter->master) {  // it lives in bf16
      tensor.read = [&store, &from = *parameter](int64_t offset, std::span<std::byte> block) {
        constexpr size_t kPiece = 1 << 18;
        std::vector<float> numbers(std::min(kPiece, block.size() / sizeof(float)));
        for (size_t done = 0; done < block.size();) {
          const std::span<float> piece =
              std::span(numbers).first(std::min(numbers.size(), (block.size() - done) / sizeof(float)));
          store.read(from, (offset + static_cast<int64_t>(done)) / size_of(DType::f32), piece);
          std::memcpy(block.data() + done, piece.data(), piece.size_bytes());
          done += piece.size_bytes();
        }
      };
      continue;
    }
    const auto* data = static_cast<const std::byte*>((parameter.get()->*which).data);
    tensor.read = [&device, data](int64_t offset, std::span<std::byte> block) {
      device.copy_out(block.data(), data + offset, std::ssize(block));
    };
  }
}

int64_t place_size(const CheckpointTensor& tensor) { return round_up(tensor.own_bytes, kCopyAlignment); }

template <typename Use>
void for_each_tensor(auto& tensors, const Use& use) {
  for (auto* list : {&tensors.model, &tensors.optimizer}) {
    for (auto& tensor : *list) use(tensor);
  }
}

}  // namespace

bool is_saved(const Parameter& parameter, TensorOfParameter which) {
  return parameter.spec.trained && (which == &Parameter::master || static_cast<bool>(parameter.*which));
}

int64_t CheckpointTensors::own_bytes() const {
  int64_t sum = 0;
  for_each_tensor(*this, [&](const CheckpointTensor& tensor) { sum += tensor.own_bytes; });
  return sum;
}

CheckpointTensors tensors_of(const ParameterStore& store, const FlatRange& own) {
  CheckpointTensors tensors;
  add_tensors(tensors.model, store, "", &Parameter::master, own);
  tensors.has_optimizer = store.is_training();
  if (!tensors.has_optimizer) return tensors;
  add_tensors(tensors.optimizer, store, kFirstMomentPrefix, &Parameter::first_moment, own);
  add_tensors(tensors.optimizer, store, kSecondMomentPrefix, &Parameter::second_moment, own);
  return tensors;
}

CheckpointCopy::CheckpointCopy(const ParameterStore& store, const FlatRange& own)
    : device_(store.device().is_cuda() ? store.device() : cpu_device()), own_(own), tensors_(tensors_of(store, own)) {
  for_each_tensor(tensors_, [&](const CheckpointTensor& tensor) { bytes_ += place_size(tensor); });
  bytes_ = std::max(bytes_, kCopyAlignment);  // where it has nothing
  data_ = static_cast<std::byte*>(device_.is_cuda() ? device_.allocate_staging(bytes_) : device_.allocate(bytes_));
  int64_t offset = 0;
  for_each_tensor(tensors_, [&](CheckpointTensor& tensor) {
    tensor.host = data_ + offset;
    tensor.read = {};
    offset += place_size(tensor);
  });
}

CheckpointCopy::~CheckpointCopy() {
  if (device_.is_cuda()) {
    device_.release_staging(data_);
  } else {
    device_.release(data_, bytes_);
  }
}

void CheckpointCopy::take(const ParameterStore& store) {
  const CheckpointTensors now = tensors_of(store, own_);
  int64_t offset = 0;
  for_each_tensor(now, [&](const CheckpointTensor& tensor) {
    BRISK_CHECK(offset + tensor.own_bytes <= bytes_, "a copy of another model: {}", tensor.name);
    if (tensor.own_bytes > 0) tensor.read(tensor.own_offset, {data_ + offset, static_cast<size_t>(tensor.own_bytes)});
    offset += place_size(tensor);
  });
  BRISK_CHECK(std::max(offset, kCopyAlignment) == bytes_, "a copy of {} bytes of another model", bytes_);
}

}  // namespace brisk
