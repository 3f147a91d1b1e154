#include "checkpoint/store_checksum.h"

#include <span>
#include <vector>

#include "base/hash.h"
#include "checkpoint/checksum.h"

namespace brisk {

uint64_t checksum_of_parameters(const ParameterStore& store, const std::function<bool(const Parameter&)>& of) {
  uint64_t sum = 0;
  std::vector<float> host;
  for (const auto& parameter : store.all()) {
    if (of && !of(*parameter)) continue;
    host.resize(static_cast<size_t>(parameter->count()));
    store.read(*parameter, 0, host);
    sum = hash_mix(hash_bytes(parameter->spec.name, sum), checksum(std::as_bytes(std::span<const float>(host))));
  }
  return sum;
}

}  // namespace brisk
