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

std::string step_text(const PackingFigures& packing, int64_t max_length) {
  if (packing.packing_efficiency <= 0) return "";
  std::string share, advice;
  if (max_length > 0) {
    constexpr double kSmall = 0.6;
    const double full = packing.rows_per_step / static_cast<double>(packing.sequences_per_step * max_length);
    share = fmt::format(", {:.0f} % of {} sequences of max_length {}", 100 * full,
                        with_commas(packing.sequences_per_step), with_commas(max_length));
    if (full < kSmall) {
      advice =
          "\n             the texts are short; a larger training.batch_size makes steps as large as max_length suggests";
    }
  }
  const std::string parts = packing.micro_batches_per_step > 1
                                ? fmt::format(", in {:.1f} micro-batches", packing.micro_batches_per_step)
                                : "";
  const std::string padding =
      packing.padding_share() > 0
          ? fmt::format("padded to {} rows, {:.0f} % of which are tokens",
                        with_commas(std::llround(packing.computed_rows_per_step)), 100 * (1 - packing.padding_share()))
          : fmt::format("nothing is padded (padded to the longest of each step, {:.0f} % would be tokens)",
                        100 * packing.padded_efficiency);
  return fmt::format("step         {} tokens on average{}{}; {}{}", with_commas(std::llround(packing.rows_per_step)),
                     share, parts, padding, advice);
}

std::string statistics_text(const CorpusStatistics& statistics) {
  std::string text = fmt::format(
      "documents    {} with {} tokens (each with its end of document)\n"
      "length       min {}, median {}, mean {:.1f}, 95 % {}, max {} tokens\n",
      with_commas(statistics.documents), with_commas(statistics.tokens), with_commas(statistics.shortest),
      with_commas(statistics.median), statistics.mean, with_commas(statistics.percentile_95),
      with_commas(statistics.longest));
  text += fmt::format("sequences    {} of at most {} tokens; ", with_commas(statistics.chunks),
                      with_commas(statistics.max_length));
  text += statistics.documents_split == 0
              ? "no document was longer"
              : fmt::format("{} longer {} split into {}", with_commas(statistics.documents_split),
                            statistics.documents_split == 1 ? "document was" : "documents were",
                            with_commas(statistics.chunks_of_split));
  return text + duplicates_text(statistics) + sources_text(statistics);
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
