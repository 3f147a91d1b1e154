// An evaluation in parts, each of which is added up by itself, divided over the processes that train together. The parts, and
// so the result to the bit, do not depend on how many processes there are.
#pragma once

#include <cstdint>

#include "base/ledger.h"
#include "data/batch/sequences.h"
#include "infer/forward/evaluator.h"
#include "train/engine/process_group.h"

namespace brisk {

// Of the first `count` sequences. Collective: all get the same result.
EvaluationResult evaluate_in_parts(Evaluator& evaluator, const Sequences& sequences, Ledger& ledger, int64_t count,
                                   int64_t parts, ProcessGroup& processes);

}  // namespace brisk
