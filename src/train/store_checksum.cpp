#include "train/store_checksum.h"

#include <vector>

#include "text/hash.h"
#include "train/checksum.h"

namespace brisk {

uint64_t checksum_of_parameters(const ParameterStore& store, const std::function<bool(const Parameter&)>& of) {
  uint64_t sum = 0;
  std::vector<std::byte> host;
  for (const auto& parameter : store.all()) {
    if (of && !of(*parameter)) continue;
    host.resize(static_cast<size_t>(parameter->count() * size_of(DType::f32)));
    store.device().copy_out(host.data(), parameter->master.data, std::ssize(host));
    sum = hash_mix(hash_bytes(parameter->spec.name, sum), checksum(host));
  }
  return sum;
}

}  // namespace brisk
