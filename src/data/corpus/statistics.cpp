#include "data/corpus/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/plural.h"

namespace brisk {

std::string with_commas(int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

namespace {

std::string percent(double part, double whole) { return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0.0); }

std::string duplicates_text(const CorpusStatistics& statistics) {
  if (!statistics.duplicates) return "";
  const DuplicateCount& copies = *statistics.duplicates;
  if (copies.documents == 0 && !copies.estimated) return "\nduplicates   none: every document is there once";
  return fmt::format(
      "\nduplicates   {}{} of an earlier one, in training and validation together", copies.estimated ? "about " : "",
      copies.documents == 1 ? "1 document is a copy" : with_commas(copies.documents) + " documents are copies");
}

std::string sources_text(const CorpusStatistics& statistics) {
  std::string text;
  for (const SourceStatistics& source : statistics.sources) {
    text += fmt::format("\nsource       {}: {} {}, {} tokens, weight {:g}: {:.1f} % of an epoch", source.name,
                        with_commas(source.documents), plural_noun(source.documents, "document"),
                        with_commas(source.tokens), source.weight, 100 * source.share);
  }
  return text;
}

}  // namespace

CorpusStatistics corpus_statistics(const CorpusPart& part, int64_t max_length) {
  CorpusStatistics statistics;
  const DocumentLengths& lengths = part.lengths;
  statistics.max_length = max_length;
  statistics.documents = lengths.documents();
  statistics.chunks = std::ssize(part.chunks);
  statistics.tokens = lengths.tokens();
  statistics.tokens_per_epoch = part.rows_per_epoch();
  if (lengths.documents() == 0) return statistics;
  statistics.shortest = lengths.shortest();
  statistics.median = lengths.at_share(0.5);
  statistics.percentile_95 = lengths.at_share(0.95);
  statistics.longest = lengths.longest();
  statistics.mean = lengths.mean();
  statistics.histogram = lengths.histogram();
  statistics.documents_split = part.documents_split;
  statistics.chunks_of_split = part.chunks_of_split;
  return statistics;
}

std::string histogram_text(const std::vector<DocumentLengths::Bar>& histogram) {
  constexpr double kCells = 40;
  int64_t most = 0, documents = 0;
  size_t width = 0;
  std::vector<std::string> ranges;
  for (const DocumentLengths::Bar& bar : histogram) {
    most = std::max(most, bar.documents);
    documents += bar.documents;
    ranges.push_back(bar.from == bar.to ? with_commas(bar.to)
                                        : fmt::format("{} to {}", with_commas(bar.from), with_commas(bar.to)));
    width = std::max(width, ranges.back().size());
  }
  std::string text;
  for (size_t i = 0; i < histogram.size(); ++i) {
    const auto count = static_cast<double>(histogram[i].documents);
    const auto cells = static_cast<size_t>(count > 0 ? std::max(1.0, kCells * count / static_cast<double>(most)) : 0);
    text += fmt::format("{}{:>{}} {:<40} {} ({})", i == 0 ? "" : "\n", ranges[i], width, std::string(cells, '#'),
                        with_commas(histogram[i].documents), percent(count, static_cast<double>(documents)));
  }
  return text;
}

std::string step_text(const PackingFigures& packing, int64_t max_length) {
  if (packing.packing_efficiency <= 0) return "";
  constexpr double kSmall = 0.6;
  const double share = packing.rows_per_step / static_cast<double>(packing.sequences_per_step * max_length);
  std::string text = fmt::format(
      "step         {} tokens on average, {:.0f} % of {} sequences of max_length {}; nothing is padded (padded to the "
      "longest of each step, {:.0f} % would be tokens)",
      with_commas(std::llround(packing.rows_per_step)), 100 * share, with_commas(packing.sequences_per_step),
      with_commas(max_length), 100 * packing.padded_efficiency);
  if (packing.micro_batches_per_step > 1)
    text += fmt::format("; in {:.1f} micro-batches", packing.micro_batches_per_step);
  if (share < kSmall) {
    text +=
        "\n             the texts are short; a larger training.batch_size makes steps as large as max_length suggests";
  }
  return text;
}

std::string statistics_text(const CorpusStatistics& statistics) {
  std::string text = fmt::format(
      "documents    {} with {} tokens (each with its end of document)\n"
      "length       min {}, median {}, mean {:.1f}, 95 % {}, max {} tokens\n",
      with_commas(statistics.documents), with_commas(statistics.tokens), with_commas(statistics.shortest),
      with_commas(statistics.median), statistics.mean, with_commas(statistics.percentile_95),
      with_commas(statistics.longest));
  if (statistics.histogram.size() > 1) text += histogram_text(statistics.histogram) + "\n";
  text += fmt::format("sequences    {} of at most {} tokens; ", with_commas(statistics.chunks),
                      with_commas(statistics.max_length));
  text +=
      statistics.documents_split == 0
          ? "no document was longer"
          : fmt::format("{} longer {} became {} of them", with_commas(statistics.documents_split),
                        plural_noun(statistics.documents_split, "document"), with_commas(statistics.chunks_of_split));
  text += duplicates_text(statistics) + sources_text(statistics);
  if (const std::string step = step_text(statistics.packing, statistics.max_length); !step.empty()) text += "\n" + step;
  return text;
}

std::string statistics_json_text(const CorpusStatistics& statistics) {
  using Json = nlohmann::ordered_json;
  Json json = {{"documents", statistics.documents},
               {"tokens", statistics.tokens},
               {"tokens_per_epoch", statistics.tokens_per_epoch},
               {"length",
                {{"min", statistics.shortest},
                 {"median", statistics.median},
                 {"mean", statistics.mean},
                 {"percentile_95", statistics.percentile_95},
                 {"max", statistics.longest}}},
               {"max_length", statistics.max_length},
               {"sequences", statistics.chunks},
               {"documents_split", statistics.documents_split},
               {"sequences_of_split", statistics.chunks_of_split}};
  json["histogram"] = Json::array();
  for (const DocumentLengths::Bar& bar : statistics.histogram) {
    json["histogram"].push_back(
        {{"from", bar.from}, {"to", bar.to}, {"documents", bar.documents}, {"tokens", bar.tokens}});
  }
  const auto put_count = [&](const char* name, const std::optional<DuplicateCount>& count) {
    if (count) json[name] = {{"documents", count->documents}, {"estimated", count->estimated}};
  };
  put_count("duplicates", statistics.duplicates);
  put_count("validation_shared_with_train", statistics.validation_shared);
  json["sources"] = Json::array();
  for (const SourceStatistics& source : statistics.sources) {
    json["sources"].push_back({{"name", source.name},
                               {"weight", source.weight},
                               {"documents", source.documents},
                               {"tokens", source.tokens},
                               {"share_of_epoch", source.share}});
  }
  if (statistics.packing.packing_efficiency > 0) {
    json["packing"] = {{"efficiency", statistics.packing.packing_efficiency},
                       {"padded_efficiency", statistics.packing.padded_efficiency},
                       {"tokens_per_step", statistics.packing.rows_per_step},
                       {"micro_batches_per_step", statistics.packing.micro_batches_per_step},
                       {"micro_batch_tokens", statistics.packing.micro_batch_tokens}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace brisk
