// Documents to the sequences a model trains on, and the split into training and validation.
//
//   CorpusSplit split = split_corpus(*stream, {.max_length = 128, .validation_fraction = 0.05, .seed = 1});
//   Loader loader(stream, split.train.chunks, ...);
//   CorpusStatistics statistics = corpus_statistics(split.train, 128);
//   say("{}", statistics_text(statistics));
//
// A document of more than max_length rows becomes chunks of max_length rows and a shorter one that holds the rest. No
// row is lost: the last row of a chunk predicts the first token of the next, the last row of a document its end.
//
//   max_length 2, [eod] a b c [eod]:   chunk 1 reads [eod] a, predicts a b;   chunk 2 reads b c, predicts c [eod]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/token_stream.h"

namespace brisk {

// Rows begin .. begin + length - 1 of a token stream: one training sequence.
struct Chunk {
  int64_t begin = 0;
  int32_t length = 0;
  bool operator==(const Chunk&) const = default;
};

struct CorpusPart {
  std::vector<Chunk> chunks;              // in the order of the stream
  std::vector<int64_t> document_lengths;  // rows: tokens and one end of document each
  int64_t rows() const;
};

struct SplitOptions {
  int64_t max_length = 128;
  double validation_fraction = 0.05;  // of the documents; 0: no validation part
  uint64_t seed = 1;
};

struct CorpusSplit {
  CorpusPart train, validation;
  std::string note;  // how it was split, for the user
};

// The whole corpus, for validation data of its own or an evaluation.
CorpusPart whole_corpus(const TokenStream& stream, int64_t max_length);

// Which documents are for validation depends on the seed and the number of the document alone; each part gets at least
// one. A corpus of a single document gives the last chunks of it; of a single chunk, no validation part.
CorpusSplit split_corpus(const TokenStream& stream, const SplitOptions& options);

struct CorpusStatistics {
  int64_t documents = 0;
  int64_t tokens = 0;  // rows: tokens to predict in an epoch
  int64_t shortest = 0, median = 0, percentile_95 = 0, longest = 0;
  double mean = 0;
  int64_t max_length = 0;
  int64_t chunks = 0;
  int64_t documents_split = 0;
  int64_t chunks_of_split = 0;  // chunks that the split documents became

  // Filled by measure_packing (data/loader.h): shares between 0 and 1, 0 where not measured.
  double packing_efficiency = 0;  // rows / capacity of the micro-batches
  double padded_efficiency = 0;   // what padding each step to its longest sequence would have had
  double micro_batches_per_step = 0;
  double rows_per_step = 0;
  int64_t micro_batch_tokens = 0;
};

CorpusStatistics corpus_statistics(const CorpusPart& part, int64_t max_length);

// A few lines of text, without a line end at the end.
std::string statistics_text(const CorpusStatistics& statistics);

}  // namespace brisk
