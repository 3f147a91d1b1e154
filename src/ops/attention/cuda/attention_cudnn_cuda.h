// Attention by cuDNN, where it is installed: bf16 or f16, self-attention, no dropout (ours draws the CPU's bits).
//
//   if (!attention_forward_cudnn(op)) ...                 // not installed, or refused: attention_refusal() says why
#pragma once

#include <string>

#include "ops/attention/attention.h"

namespace brisk::cuda {

// False: nothing was done. Plans are made when a shape comes first (about a second each) and kept; while a graph is
// recorded none is made. The log-sum-exp is as every other variant leaves it.
bool attention_forward_cudnn(const AttentionForward& op);
// Not `deterministic`: about as fast as the GPU allows, and other bits each time; for timings alone.
bool attention_backward_cudnn(const AttentionBackward& op, bool deterministic);

int64_t attention_library_version();  // 91900 is cuDNN 9.19.0; 0: there is none

// Why the last one said no, and which engine the last one ran by.
const std::string& attention_refusal();
const std::string& attention_engine();

}  // namespace brisk::cuda
