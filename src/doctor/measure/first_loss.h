// The loss of a new model before its first step, where that is known: it gives all tokens the same probability as long as its
// logits start near 0.
//
//   first_loss_of_a_new_model(store, 8192)        // ln 8192, or less than 0: nothing is expected
//
// Logits whose variance is not small have a higher loss; and where the output projection is the token table, scaled by
// sqrt(D) on its way in, the residual stream gives the token that was read a logit of up to sqrt(D). (A translator of
// 3+3 layers of 64 and 600 tokens starts at 7.4, and ln 600 is 6.4.)
#pragma once

#include <cstdint>

#include "tensor/parameter.h"

namespace brisk {

double first_loss_of_a_new_model(const ParameterStore& store, int64_t entries);

}  // namespace brisk
