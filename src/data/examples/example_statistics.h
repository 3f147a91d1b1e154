// Statistics of the examples of a table, printed before training.
//
//   ExampleStatistics statistics = example_statistics(split.train, 128);
//   say("{}", example_statistics_text(statistics));
//   write_file_atomically(run + "/statistics.json", example_statistics_json_text(statistics));
//
//   examples     67,349 with 899,017 tokens (each with its special tokens)
//   length       min 3, median 11, mean 13.3, 95 % 30, max 66 tokens
//   truncation   none: no example is longer than 128 tokens
//   classes      2
//   class  examples   share
//   0        29,780  44.2 %  #######################
//   1        37,569  55.8 %  ##############################
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/corpus/document_lengths.h"
#include "data/examples/examples.h"

namespace brisk {

struct ExampleStatistics {
  int64_t examples = 0;
  bool pieces = false;  // long texts were divided, so nothing is truncated
  int64_t max_length = 0;
  int64_t tokens = 0;          // of an epoch, special ones included, after truncation
  int64_t truncated = 0;       // examples that are too long
  int64_t tokens_cut = 0;      // tokens these lose
  DocumentLengths lengths;     // before truncation
  int64_t copies = 0;          // examples whose text occurred before
  int64_t contradictions = 0;  // texts that occur with different labels
  std::vector<std::string> class_names;
  std::vector<int64_t> class_counts;
};

// `full_length`: rows of an example, where it is not all that the set has of it.
ExampleStatistics example_statistics(const ExampleSet& examples, int64_t max_length,
                                     const std::function<int64_t(int64_t example)>& full_length = {});

// A few lines, without a line end at the end. Of many classes the largest and the smallest are shown.
std::string example_statistics_text(const ExampleStatistics& statistics);

std::string class_balance_text(const ExampleStatistics& statistics);

// One object, the fields above by name.
std::string example_statistics_json_text(const ExampleStatistics& statistics);

}  // namespace brisk
