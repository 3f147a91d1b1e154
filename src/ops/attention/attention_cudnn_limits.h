// Where cuDNN's attention is worth trying on a GPU.
#pragma once

#include <cstdint>

namespace brisk {

// A plan of cuDNN takes half a second to make. Of short sequences with heads at most 64 wide our own were 1.4 times as
// fast, of those of 1024 rows cuDNN's 1.5 times, of heads of 128 three times (H200).
constexpr bool may_suit_cudnn(int64_t head_width, int64_t longest) { return head_width > 64 || longest >= 512; }
constexpr int64_t kMostCudnnBytes = int64_t{4} << 30;  // of one plan's workspace

}  // namespace brisk
