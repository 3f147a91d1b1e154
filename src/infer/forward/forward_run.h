// A model that is run forward, for one value: its tape, the program planned from that, and the batch it reads.
//
//   ForwardRun run(store, {.rows = layout.capacities(capacity)}, [&](Tape& tape) { return model.class_logits(tape); });
//   run.forward(micro_batch, ledger);                                  // or every micro-batch of some sequences:
//   run.forward(*sequences, ledger, [&](const MicroBatch& batch) { run.read(logits); });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/ledger.h"
#include "data/batch/sequences.h"
#include "infer/forward/batch_buffer.h"
#include "tensor/parameter.h"
#include "tensor/program.h"

namespace brisk {

class ForwardRun {
 public:
  struct Options {
    std::vector<RowCapacity> rows;  // per row set of a micro-batch
    Backend backend = Backend::cpu;
    GemmFormat products = GemmFormat::own;
    // Whose memory it uses, and which must outlive it; the two must not be active at the same time. Null: its own.
    const Program* shared_with = nullptr;
  };
  // `record` puts the model's ops on the tape and says which value is wanted. `store` must outlive the run.
  ForwardRun(const ParameterStore& store, const Options& options, const std::function<Value(Tape&)>& record);
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;

  void forward(const MicroBatch& batch, Ledger& ledger, const KeyValueCache* cache = nullptr);
  // Of the first `count` sequences, or of all, packed in their order: `each` is called when a micro-batch is done.
  // Returns the rows that were computed.
  int64_t forward(const Sequences& sequences, Ledger& ledger, const std::function<void(const MicroBatch&)>& each,
                  int64_t count = std::numeric_limits<int64_t>::max());

  Tensor value() const { return program_.value(value_, batch_); }  // of the last micro-batch, in device memory
  void read(std::span<std::byte> bytes) const;                     // as much of it as there is room for
  // All of it.
  template <typename T>
  void read(std::vector<T>& values) const {
    const Tensor made = value();
    values.resize(static_cast<size_t>(made.rows * made.cols * size_of(made.type)) / sizeof(T));
    read(std::as_writable_bytes(std::span(values)));
  }

 private:
  Device& device_;
  Tape tape_;
  Value value_;
  Program program_;
  BatchBuffer buffer_;
  DeviceBatch batch_;
};

}  // namespace brisk
