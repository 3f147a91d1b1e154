#include "data/corpus.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace brisk {

namespace {

void append_chunks(TokenStream::Rows rows, int64_t max_length, std::vector<Chunk>& chunks) {
  for (int64_t begin = rows.begin; begin < rows.end; begin += max_length) {
    chunks.push_back({begin, static_cast<int32_t>(std::min(max_length, rows.end - begin))});
  }
}

void append_document(const TokenStream& stream, int64_t document, int64_t max_length, CorpusPart& part) {
  const TokenStream::Rows rows = stream.document_rows(document);
  part.document_lengths.push_back(rows.size());
  append_chunks(rows, max_length, part.chunks);
}

// round(fraction x count), but at least one for each side.
int64_t validation_share(double fraction, int64_t count) {
  return std::clamp(std::llround(fraction * static_cast<double>(count)), 1LL, static_cast<long long>(count - 1));
}

// The last chunks of the one document there is.
CorpusSplit split_single_document(const TokenStream& stream, const SplitOptions& options) {
  CorpusSplit split;
  split.train = whole_corpus(stream, options.max_length);
  std::vector<Chunk>& chunks = split.train.chunks;
  const auto count = static_cast<int64_t>(chunks.size());
  if (count < 2) {
    split.note = fmt::format("no validation part: the text is a single sequence of {} tokens", stream.rows());
    return split;
  }
  const int64_t taken = validation_share(options.validation_fraction, count);
  split.validation.chunks.assign(chunks.end() - taken, chunks.end());
  chunks.resize(static_cast<size_t>(count - taken));
  split.validation.document_lengths = {split.validation.rows()};
  split.train.document_lengths = {split.train.rows()};
  split.note = fmt::format("validation: the last {} of {} sequences of the one document", taken, count);
  return split;
}

std::string with_commas(int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

}  // namespace

int64_t CorpusPart::rows() const {
  return std::accumulate(chunks.begin(), chunks.end(), int64_t{0},
                         [](int64_t sum, const Chunk& chunk) { return sum + chunk.length; });
}

CorpusPart whole_corpus(const TokenStream& stream, int64_t max_length) {
  BRISK_CHECK(max_length > 0 && max_length <= INT32_MAX, "max_length = {}", max_length);
  CorpusPart part;
  part.document_lengths.reserve(static_cast<size_t>(stream.documents()));
  for (int64_t document = 0; document < stream.documents(); ++document) {
    append_document(stream, document, max_length, part);
  }
  return part;
}

CorpusSplit split_corpus(const TokenStream& stream, const SplitOptions& options) {
  BRISK_CHECK(options.max_length > 0 && options.max_length <= INT32_MAX, "max_length = {}", options.max_length);
  BRISK_CHECK(options.validation_fraction >= 0 && options.validation_fraction < 1, "validation_fraction = {}",
              options.validation_fraction);
  if (options.validation_fraction == 0) {
    return {whole_corpus(stream, options.max_length), {}, "no validation part (validation_fraction is 0)"};
  }
  const int64_t documents = stream.documents();
  if (documents < 2) return split_single_document(stream, options);

  // Each document draws a number; those with the smallest are for validation. Ties are broken by the document number.
  const int64_t taken = validation_share(options.validation_fraction, documents);
  constexpr uint64_t kSplitSite = 0x73706C6974;  // "split": apart from every other use of the seed
  const uint64_t site = random_key({options.seed, kSplitSite});
  const auto draw = [&](int64_t document) { return mix64(site ^ static_cast<uint64_t>(document)); };
  std::vector<int64_t> order(static_cast<size_t>(documents));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) { return std::pair(draw(a), a) < std::pair(draw(b), b); };
  std::nth_element(order.begin(), order.begin() + taken, order.end(), before);
  std::vector<bool> for_validation(static_cast<size_t>(documents), false);
  for (int64_t i = 0; i < taken; ++i) for_validation[static_cast<size_t>(order[static_cast<size_t>(i)])] = true;

  CorpusSplit split;
  for (int64_t document = 0; document < documents; ++document) {
    CorpusPart& part = for_validation[static_cast<size_t>(document)] ? split.validation : split.train;
    append_document(stream, document, options.max_length, part);
  }
  split.note = fmt::format("validation: {} of {} documents, {:.1f} % of the tokens", taken, documents,
                           100.0 * static_cast<double>(split.validation.rows()) / static_cast<double>(stream.rows()));
  return split;
}

CorpusStatistics corpus_statistics(const CorpusPart& part, int64_t max_length) {
  CorpusStatistics statistics;
  statistics.max_length = max_length;
  statistics.documents = static_cast<int64_t>(part.document_lengths.size());
  statistics.chunks = static_cast<int64_t>(part.chunks.size());
  if (part.document_lengths.empty()) return statistics;
  std::vector<int64_t> lengths = part.document_lengths;
  std::sort(lengths.begin(), lengths.end());
  // Nearest rank: the smallest length that at least `share` of the documents do not exceed.
  const auto rank = [&](double share) {
    const auto position = static_cast<int64_t>(std::ceil(share * static_cast<double>(lengths.size())));
    return lengths[static_cast<size_t>(std::max<int64_t>(position, 1) - 1)];
  };
  statistics.shortest = lengths.front();
  statistics.median = rank(0.5);
  statistics.percentile_95 = rank(0.95);
  statistics.longest = lengths.back();
  for (const int64_t length : lengths) {
    statistics.tokens += length;
    if (length <= max_length) continue;
    ++statistics.documents_split;
    statistics.chunks_of_split += (length + max_length - 1) / max_length;
  }
  statistics.mean = static_cast<double>(statistics.tokens) / static_cast<double>(statistics.documents);
  return statistics;
}

std::string statistics_text(const CorpusStatistics& statistics) {
  std::string text = fmt::format(
      "documents    {} with {} tokens (each with its end of document)\n"
      "length       min {}, median {}, mean {:.1f}, 95 % {}, max {} tokens\n"
      "sequences    {} of at most {} tokens; ",
      with_commas(statistics.documents), with_commas(statistics.tokens), with_commas(statistics.shortest),
      with_commas(statistics.median), statistics.mean, with_commas(statistics.percentile_95),
      with_commas(statistics.longest), with_commas(statistics.chunks), with_commas(statistics.max_length));
  text += statistics.documents_split == 0
              ? "no document was longer"
              : fmt::format("{} longer {} became {} of them", with_commas(statistics.documents_split),
                            statistics.documents_split == 1 ? "document" : "documents",
                            with_commas(statistics.chunks_of_split));
  if (statistics.packing_efficiency > 0) {
    text += fmt::format(
        "\nstep         {:.0f} tokens in {:.1f} micro-batches of at most {}\n"
        "packing      {:.1f} % of the micro-batches' capacity is tokens, and no row is padding "
        "(padded to the longest sequence of each step, {:.1f} % would be tokens)",
        statistics.rows_per_step, statistics.micro_batches_per_step, with_commas(statistics.micro_batch_tokens),
        100 * statistics.packing_efficiency, 100 * statistics.padded_efficiency);
  }
  return text;
}

}  // namespace brisk
