// How the optimizer's work is divided over processes that train one model together: each updates a range of the flat arrays and
// keeps the moments of that range alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/parameter.h"

namespace brisk {

// Where the flat arrays of trained parameters are cut into so many shards, with about as much work for the optimizer each:
// shards + 1 places, none inside a matrix that Muon updates. The store has its memory. Of half as many shards the places are
// every second one of these.
std::vector<int64_t> shard_bounds(const ParameterStore& store, bool has_muon, int64_t shards);

}  // namespace brisk
