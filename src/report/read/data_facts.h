// What a run was trained on, as its start counted it: read back from its statistics.json.
//
//   const DataFacts data = read_data_facts("runs/bible/statistics.json", notes);
//   if (!data.empty()) body += data_section_html(run);   // report/page/data_section.h
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/read/unknown.h"

namespace brisk {

struct DataFacts {
  std::string unit;  // "documents" of a text, "examples" of a table; empty: nothing is known
  double count = kUnknown, tokens_per_epoch = kUnknown, max_length = kUnknown;
  double shortest = kUnknown, median = kUnknown, mean = kUnknown, percentile_95 = kUnknown, longest = kUnknown;
  struct Lengths {  // so many are between `from` and `to` tokens long
    double from = 0, to = 0, count = 0;
  };
  std::vector<Lengths> lengths;

  double sequences = kUnknown, split = kUnknown;        // documents are cut into sequences
  double truncated = kUnknown, tokens_cut = kUnknown;   // examples lose their ends
  double copies = kUnknown, contradictions = kUnknown;  // of an earlier text; with another label
  double shared_with_validation = kUnknown;             // of the validation's documents
  double tokens_per_step = kUnknown;
  std::vector<std::pair<std::string, double>> classes;  // examples of each

  bool empty() const { return unit.empty(); }
};

// Empty where there is no such file; where it cannot be understood, a note says so.
DataFacts read_data_facts(const std::string& path, std::vector<std::string>& notes);

}  // namespace brisk
