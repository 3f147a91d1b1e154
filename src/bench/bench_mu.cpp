#include "bench/bench_mu.h"

#include "models/mu.h"

namespace brisk {

TextTrainingFigures bench_mu(const MuBenchOptions& options) {
  return bench_text_training({.model = MuConfig{.vocab_size = options.vocabulary,
                                                .num_layers = options.layers,
                                                .max_length = options.max_length,
                                                .dropout = options.dropout,
                                                .reference = options.reference},
                              .vocab_size = options.vocabulary,
                              .max_length = options.max_length,
                              .batch = options.batch,
                              .precision = options.precision,
                              .master_weights = options.master_weights,
                              .seconds = options.seconds,
                              .threads = options.threads,
                              .micro_batch_tokens = options.micro_batch_tokens,
                              .device = options.device,
                              .processes = options.processes,
                              .sizes = "--layers, --vocabulary, --batch, --micro-batch-tokens or --max-length"});
}

}  // namespace brisk
