// Turns documents into the sequences a model trains on, and splits them into training and validation.
//
//   CorpusSplit split = split_corpus(*stream, {.max_length = 128, .validation_fraction = 0.05, .seed = 1});
//   Loader loader(text_sequences(stream, split.train.chunks), ...);
//   CorpusStatistics statistics = corpus_statistics(split.train, 128);
//   say("{}", statistics_text(statistics));
//
// A document of more than max_length rows becomes chunks of max_length rows and a shorter one that holds the rest. No
// row is lost: the last row of a chunk predicts the first token of the next, the last row of a document its end.
//
//   max_length 2, [eod] a b c [eod]:   chunk 1 reads [eod] a, predicts a b;   chunk 2 reads b c, predicts c [eod]
//
// With a stride below max_length, chunks of a document begin every `stride` rows and overlap, until one reaches its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/document_lengths.h"
#include "data/token_store/chunk_list.h"
#include "data/token_store/token_stream.h"

namespace brisk {

// The chunks of one source, which are contiguous, and how many of them an epoch draws: chunks x weight.
struct SourceShare {
  int64_t chunks = 0;
  int64_t draws = 0;
  double weight = 1;
  int64_t documents = 0, rows = 0;  // of all its chunks
};

struct CorpusPart {
  ChunkList chunks;         // in the order of the stream
  DocumentLengths lengths;  // in rows: tokens plus one end of document each
  std::vector<SourceShare> sources;
  int64_t documents_split = 0;  // longer than max_length
  int64_t chunks_of_split = 0;  // chunks that these became

  int64_t rows() const { return chunks.rows(); }
  int64_t sequences_per_epoch() const;  // draws of all sources
  double rows_per_epoch() const;        // expected
};

struct SplitOptions {
  int64_t max_length = 128;
  double validation_fraction = 0.05;  // of the documents; 0: no validation part
  uint64_t seed = 1;
  std::vector<double> weights = {};    // of the stream's parts; empty: 1 each
  std::string scratch_directory = "";  // for long lists of chunks
  int64_t stride = 0;                  // of chunks; 0: max_length
};

struct CorpusSplit {
  CorpusPart train, validation;
  std::string note;  // how it was split, for the user
};

// The whole corpus, for validation data of its own or an evaluation.
CorpusPart whole_corpus(const TokenStream& stream, int64_t max_length, const std::vector<double>& weights = {},
                        const std::string& scratch_directory = "", int64_t stride = 0);

// Which documents are for validation depends only on the seed and the documents' texts, so copies of a text are on the
// same side; each part gets at least one. A text with more copies than the validation part may have documents goes to
// training. With a single document, its last chunks are the validation part; with a single chunk, or if all documents
// are the same, there is none.
CorpusSplit split_corpus(const TokenStream& stream, const SplitOptions& options);

}  // namespace brisk
