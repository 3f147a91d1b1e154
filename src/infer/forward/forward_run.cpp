#include "infer/forward/forward_run.h"

#include "base/error.h"
#include "base/runtime.h"
#include "data/batch/packer.h"

namespace brisk {

ForwardRun::ForwardRun(const ParameterStore& store, const Options& options, const std::function<Value(Tape&)>& record)
    : device_(store.device()),
      tape_({.purpose = Tape::Purpose::evaluation, .activation_type = store.compute_type(), .rows = options.rows}),
      value_(record(tape_)),
      program_(tape_, {.backend = options.backend, .products = options.products}),
      buffer_(device_, tape_) {
  if (options.shared_with != nullptr) {
    program_.allocate_with(*options.shared_with);
  } else {
    program_.allocate(device_);
  }
}

void ForwardRun::forward(const MicroBatch& batch, Ledger& ledger, const KeyValueCache* cache) {
  buffer_.load(batch, batch_.sets);
  batch_.cache = cache;
  program_.forward(batch_, ledger);
}

int64_t ForwardRun::forward(const Sequences& sequences, Ledger& ledger,
                            const std::function<void(const MicroBatch&)>& each, int64_t count) {
  EvaluationPacker::Limits limits{.rows = {}, .sequences = tape_.rows(0).sequences, .count = count};
  for (int set = 0; set < sequences.sets(); ++set) limits.rows.push_back(tape_.rows(set).rows);
  EvaluationPacker packer(sequences, limits);
  MicroBatch batch;
  int64_t rows = 0;
  while (packer.next(batch)) {
    throw_if_cancelled();
    forward(batch, ledger);
    each(batch);
    rows += batch.rows();
  }
  return rows;
}

void ForwardRun::read(std::span<std::byte> bytes) const {
  device_.copy_out(bytes.data(), value().data, std::ssize(bytes));
}

}  // namespace brisk
