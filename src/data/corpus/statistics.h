// Statistics of a corpus, printed before training.
//
//   CorpusStatistics statistics = corpus_statistics(split.train, 128);
//   statistics.duplicates = count_duplicates(*stream);
//   say("{}", statistics_text(statistics));
//   write_file_atomically(run + "/statistics.json", statistics_json_text(statistics));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/corpus/document_lengths.h"
#include "data/corpus/duplicates.h"

namespace brisk {

struct SourceStatistics {
  std::string name;
  double weight = 1;
  int64_t documents = 0, tokens = 0;
  double share = 0;  // of the tokens of an epoch
};

// How the steps of an epoch divide into micro-batches; all 0 if it was not measured (measure_packing,
// data/batch/loader.h).
struct PackingFigures {
  int64_t micro_batch_tokens = 0;
  double packing_efficiency = 0;  // rows / capacity of the micro-batches
  double padded_efficiency = 0;   // what padding each step to its longest sequence would have had
  double micro_batches_per_step = 0;
  double rows_per_step = 0;
  double computed_rows_per_step = 0;  // these and the padding, where the job asks for some (training.padding)
  int64_t sequences_per_step = 0;

  double padding_share() const {  // of the rows that are computed
    return computed_rows_per_step > 0 ? 1 - rows_per_step / computed_rows_per_step : 0;
  }
};

// "step         1,046 tokens on average, 51 % of 16 sequences of max_length 128; nothing is padded ...": one line for
// people, and one with advice where short texts make steps much smaller than that; "" if nothing was measured.
// `max_length` 0: what share that is says nothing about such texts.
std::string step_text(const PackingFigures& packing, int64_t max_length);

struct CorpusStatistics {
  int64_t documents = 0;
  int64_t tokens = 0;           // rows: tokens to predict, each counted once
  double tokens_per_epoch = 0;  // as the sources' weights say
  int64_t shortest = 0, median = 0, percentile_95 = 0, longest = 0;
  double mean = 0;
  std::vector<DocumentLengths::Bar> histogram;
  int64_t max_length = 0;
  int64_t chunks = 0;
  int64_t documents_split = 0;
  int64_t chunks_of_split = 0;            // chunks that the split documents became
  std::vector<SourceStatistics> sources;  // where there are several

  // Filled by whoever counts them.
  std::optional<DuplicateCount> duplicates;         // documents of train and validation whose text came before
  std::optional<DuplicateCount> validation_shared;  // documents of validation files that training has, too

  PackingFigures packing;
};

CorpusStatistics corpus_statistics(const CorpusPart& part, int64_t max_length);

// A few lines of text, without a line end at the end.
std::string statistics_text(const CorpusStatistics& statistics);

std::string with_commas(int64_t number);  // "1,204"

// One object, the fields above by name.
std::string statistics_json_text(const CorpusStatistics& statistics);

}  // namespace brisk
