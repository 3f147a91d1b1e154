#include "data/examples/example_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "data/corpus/statistics.h"

namespace brisk {

namespace {

std::string percent(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

void count_copies(const ExampleSet& examples, ExampleStatistics& statistics) {
  std::vector<std::pair<uint64_t, int32_t>> texts;
  texts.reserve(static_cast<size_t>(examples.count()));
  for (int64_t i = 0; i < examples.count(); ++i) texts.emplace_back(examples.text_hash(i), examples.label(i));
  std::sort(texts.begin(), texts.end());
  for (size_t begin = 0; begin < texts.size();) {
    size_t end = begin;
    while (end < texts.size() && texts[end].first == texts[begin].first) ++end;
    statistics.copies += static_cast<int64_t>(end - begin) - 1;
    statistics.contradictions += texts[begin].second != texts[end - 1].second;
    begin = end;
  }
}

}  // namespace

ExampleStatistics example_statistics(const ExampleSet& examples, int64_t max_length,
                                     const std::function<int64_t(int64_t example)>& full_length) {
  ExampleStatistics statistics;
  statistics.examples = examples.count();
  statistics.pieces = examples.are_pieces();
  statistics.max_length = max_length;
  statistics.class_names = examples.labels().names();
  statistics.class_counts = examples.class_counts();
  for (int64_t i = 0; i < examples.count(); ++i) {
    const int64_t full = full_length ? full_length(i) : examples.full_length(i), kept = std::min(full, max_length);
    statistics.lengths.add(full);
    statistics.tokens += kept;
    statistics.tokens_cut += full - kept;
    statistics.truncated += full > kept;
  }
  if (!examples.are_pieces()) count_copies(examples, statistics);
  return statistics;
}

std::string class_balance_text(const ExampleStatistics& statistics) {
  constexpr size_t kAll = 20, kEnds = 8;
  constexpr double kCells = 30;
  std::vector<size_t> order(statistics.class_counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool some = order.size() > kAll;
  const auto by_size = [&](size_t a, size_t b) { return statistics.class_counts[a] > statistics.class_counts[b]; };
  if (some) std::stable_sort(order.begin(), order.end(), by_size);
  const int64_t most =
      order.empty() ? 0 : *std::max_element(statistics.class_counts.begin(), statistics.class_counts.end());
  Table table({"class", {"examples", Align::right}, {"share", Align::right}, ""});
  for (size_t i = 0; i < order.size(); ++i) {
    if (some && i == kEnds) {
      table.add_row({fmt::format("... {} more", order.size() - 2 * kEnds)});
      i = order.size() - kEnds;
    }
    const int64_t count = statistics.class_counts[order[i]];
    const auto cells = static_cast<size_t>(
        count == 0 ? 0 : std::max(1.0, kCells * static_cast<double>(count) / static_cast<double>(most)));
    const std::string name = shortened(statistics.class_names[order[i]], 40);
    table.add_row({name, with_commas(count), percent(count, statistics.examples), std::string(cells, '#')});
  }
  std::string text = table.text();
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string example_statistics_text(const ExampleStatistics& statistics) {
  const DocumentLengths& lengths = statistics.lengths;
  std::string text = fmt::format(
      "examples     {}{} with {} tokens (each with its special tokens)\n"
      "length       min {}, median {}, mean {:.1f}, 95 % {}, max {} tokens\n",
      with_commas(statistics.examples), statistics.pieces ? " chunks of texts" : "", with_commas(lengths.tokens()),
      with_commas(lengths.shortest()), with_commas(statistics.examples > 0 ? lengths.at_share(0.5) : 0), lengths.mean(),
      with_commas(statistics.examples > 0 ? lengths.at_share(0.95) : 0), with_commas(lengths.longest()));
  text +=
      statistics.pieces ? fmt::format("truncation   none: a text of more than {} tokens is split into chunks",
                                      with_commas(statistics.max_length))
      : statistics.truncated == 0
          ? fmt::format("truncation   none: no example is longer than {} tokens", with_commas(statistics.max_length))
          : fmt::format("truncation   {} {} ({}) {} longer than {} tokens and truncated, losing {} of all tokens",
                        with_commas(statistics.truncated), plural_noun(statistics.truncated, "example"),
                        percent(statistics.truncated, statistics.examples), statistics.truncated == 1 ? "is" : "are",
                        with_commas(statistics.max_length), percent(statistics.tokens_cut, lengths.tokens()));
  if (statistics.copies > 0) {
    text += fmt::format(
        "\nduplicates   {} {} an earlier text{}", with_commas(statistics.copies),
        statistics.copies == 1 ? "example repeats" : "examples repeat",
        statistics.contradictions > 0
            ? fmt::format("; {} with different labels", statistics.contradictions == 1
                                                            ? "1 text comes"
                                                            : with_commas(statistics.contradictions) + " texts come")
            : "");
  }
  if (!statistics.class_counts.empty()) {
    text += fmt::format("\nclasses      {}\n", with_commas(std::ssize(statistics.class_counts)));
    text += class_balance_text(statistics);
  }
  return text;
}

std::string example_statistics_json_text(const ExampleStatistics& statistics) {
  using Json = nlohmann::ordered_json;
  const DocumentLengths& lengths = statistics.lengths;
  const bool any = statistics.examples > 0;
  Json json = {{"examples", statistics.examples},
               {"tokens_per_epoch", statistics.tokens},
               {"length",
                {{"min", lengths.shortest()},
                 {"median", any ? lengths.at_share(0.5) : 0},
                 {"mean", lengths.mean()},
                 {"percentile_95", any ? lengths.at_share(0.95) : 0},
                 {"max", lengths.longest()}}},
               {"max_length", statistics.max_length},
               {"truncated", statistics.truncated},
               {"tokens_cut", statistics.tokens_cut},
               {"copies", statistics.copies},
               {"contradictions", statistics.contradictions}};
  json["histogram"] = Json::array();
  for (const DocumentLengths::Bar& bar : lengths.histogram()) {
    json["histogram"].push_back(
        {{"from", bar.from}, {"to", bar.to}, {"examples", bar.documents}, {"tokens", bar.tokens}});
  }
  json["classes"] = Json::array();
  for (size_t i = 0; i < statistics.class_counts.size(); ++i) {
    json["classes"].push_back({{"name", statistics.class_names[i]}, {"examples", statistics.class_counts[i]}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace brisk
