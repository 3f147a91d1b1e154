#include "data/corpus/corpus.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

// Takes the documents of a part in the order of the stream.
class PartBuilder {
 public:
  PartBuilder(const TokenStream& stream, int64_t max_length, const std::vector<double>& weights,
              const std::string& scratch_directory, int64_t stride)
      : stream_(stream),
        max_length_(max_length),
        stride_(stride > 0 ? stride : max_length),
        chunks_(scratch_directory) {
    BRISK_CHECK(max_length > 0 && max_length <= INT32_MAX, "max_length = {}", max_length);
    BRISK_CHECK(stride_ <= max_length, "a stride of {}, sequences of {}", stride_, max_length);
    BRISK_CHECK(weights.empty() || std::ssize(weights) == stream.parts(), "{} weights", weights.size());
    for (int64_t i = 0; i < stream.parts(); ++i) {
      part_.sources.push_back({.weight = weights.empty() ? 1 : weights[static_cast<size_t>(i)]});
    }
  }

  void add_document(int64_t document, int64_t source) {
    const TokenStream::Rows rows = stream_.document_rows(document);
    part_.lengths.add(rows.size());
    SourceShare& share = part_.sources[static_cast<size_t>(source)];
    ++share.documents;
    const int64_t before = chunks_.size(), rows_before = chunks_.rows();
    int64_t end = rows.begin;
    for (int64_t begin = rows.begin; end < rows.end; begin += stride_) {
      end = std::min(begin + max_length_, rows.end);
      chunks_.add({begin, static_cast<int32_t>(end - begin)});
    }
    const int64_t added = chunks_.size() - before;
    share.rows += chunks_.rows() - rows_before;
    share.chunks += added;
    if (added < 2) return;
    ++part_.documents_split;
    part_.chunks_of_split += added;
  }

  CorpusPart finish() && {
    for (SourceShare& source : part_.sources) {
      source.draws = std::llround(source.weight * static_cast<double>(source.chunks));
      if (source.chunks > 0) source.draws = std::max<int64_t>(1, source.draws);
    }
    part_.chunks = std::move(chunks_).finish();
    return std::move(part_);
  }

 private:
  const TokenStream& stream_;
  int64_t max_length_, stride_;
  ChunkListBuilder chunks_;
  CorpusPart part_;
};

// body(document, source)
template <typename Body>
void for_each_document(const TokenStream& stream, const Body& body) {
  int64_t document = 0;
  for (int64_t source = 0; source < stream.parts(); ++source) {
    for (const int64_t end = document + stream.part_documents(source); document < end; ++document) {
      body(document, source);
    }
  }
}

// round(fraction x count), but at least one for each side.
int64_t validation_share(double fraction, int64_t count) {
  return std::clamp(std::llround(fraction * static_cast<double>(count)), 1LL, static_cast<long long>(count - 1));
}

// Each text draws a number; the documents whose texts drew the smallest are for validation. In constant memory: the
// hashes are mapped, and are gone through once for each 16 bits of the number that is looked for.
class TextLottery {
 public:
  TextLottery(const TokenStream& stream, uint64_t seed) : stream_(stream) {
    constexpr uint64_t kSplitSite = 0x73706C6974;  // "split": apart from every other use of the seed
    site_ = random_key({seed, kSplitSite});
  }

  // Chooses about `count` documents; false if there are too few texts to choose from.
  bool choose(int64_t count) {
    constexpr size_t kMostCrowded = 64;
    while (crowded_.size() <= kMostCrowded) {
      const std::optional<uint64_t> limit = smallest(count);
      if (!limit) return false;
      int64_t copies = 0;
      for (int64_t document = 0; document < stream_.documents(); ++document) copies += draw(document) == *limit;
      if (copies <= count) {
        limit_ = *limit;
        return true;
      }
      crowded_.insert(*limit);  // one text would fill the part: training keeps it
    }
    return false;
  }

  bool chosen(int64_t document) const {
    const uint64_t drawn = draw(document);
    return drawn <= limit_ && !crowded_.contains(drawn);
  }

 private:
  uint64_t draw(int64_t document) const { return mix64(site_ ^ stream_.document_hash(document)); }

  // The draw of rank `rank`, from 1, among those not crowded; nothing if there are fewer.
  std::optional<uint64_t> smallest(int64_t rank) const {
    constexpr int kBits = 16;
    uint64_t prefix = 0;
    for (int shift = 64 - kBits; shift >= 0; shift -= kBits) {
      std::vector<int64_t> counts(size_t{1} << kBits);
      for (int64_t document = 0; document < stream_.documents(); ++document) {
        const uint64_t drawn = draw(document);
        const bool inside = shift + kBits == 64 || drawn >> (shift + kBits) == prefix;
        if (inside && !crowded_.contains(drawn)) ++counts[(drawn >> shift) & (counts.size() - 1)];
      }
      size_t digit = 0;
      while (digit < counts.size() && rank > counts[digit]) rank -= counts[digit++];
      if (digit == counts.size()) return std::nullopt;
      prefix = prefix << kBits | digit;
    }
    return prefix;
  }

  const TokenStream& stream_;
  uint64_t site_, limit_ = 0;
  std::set<uint64_t> crowded_;
};

// The last chunks of the one document there is.
CorpusSplit split_single_document(const TokenStream& stream, const SplitOptions& options) {
  CorpusSplit split;
  split.train = whole_corpus(stream, options.max_length, options.weights, options.scratch_directory, options.stride);
  const auto count = std::ssize(split.train.chunks);
  if (count < 2) {
    split.note = fmt::format("no validation part: the text is a single sequence of {}", plural(stream.rows(), "token"));
    return split;
  }
  const int64_t taken = validation_share(options.validation_fraction, count);
  const auto part_of = [&](int64_t begin, int64_t end) {
    ChunkListBuilder chunks(options.scratch_directory);
    for (int64_t i = begin; i < end; ++i) chunks.add(split.train.chunks[static_cast<size_t>(i)]);
    CorpusPart part;
    part.chunks = std::move(chunks).finish();
    const Chunk &first = part.chunks[0], &last = part.chunks[part.chunks.size() - 1];
    part.lengths.add(last.begin + last.length - first.begin);
    part.documents_split = end - begin > 1 ? 1 : 0;
    part.chunks_of_split = end - begin > 1 ? end - begin : 0;
    const double weight = options.weights.empty() ? 1 : options.weights[0];
    part.sources = {{.chunks = end - begin,
                     .draws = std::max<int64_t>(1, std::llround(weight * static_cast<double>(end - begin))),
                     .weight = weight,
                     .documents = 1,
                     .rows = part.rows()}};
    return part;
  };
  const auto all = split.train.chunks;
  int64_t trained = count - taken;  // without chunks that reach into the validation part
  const Chunk& validated = all[static_cast<size_t>(trained)];
  const auto reaches_into_it = [&](const Chunk& chunk) { return chunk.begin + chunk.length > validated.begin; };
  while (trained > 0 && reaches_into_it(all[static_cast<size_t>(trained - 1)])) --trained;
  if (trained == 0) {
    split.note = fmt::format("no validation part: the text is {} that overlap", plural(count, "sequence"));
    return split;
  }
  split.validation = part_of(count - taken, count);
  split.train = part_of(0, trained);
  split.note = fmt::format("validation: the last {} of {} of the one document", taken, plural(count, "sequence"));
  return split;
}

}  // namespace

int64_t CorpusPart::sequences_per_epoch() const {
  int64_t sum = 0;
  for (const SourceShare& source : sources) sum += source.draws;
  return sum;
}

double CorpusPart::rows_per_epoch() const {
  double sum = 0;
  for (const SourceShare& source : sources) {
    if (source.chunks == 0) continue;
    sum += static_cast<double>(source.rows) * static_cast<double>(source.draws) / static_cast<double>(source.chunks);
  }
  return sum;
}

CorpusPart whole_corpus(const TokenStream& stream, int64_t max_length, const std::vector<double>& weights,
                        const std::string& scratch_directory, int64_t stride) {
  PartBuilder part(stream, max_length, weights, scratch_directory, stride);
  for_each_document(stream, [&](int64_t document, int64_t source) { part.add_document(document, source); });
  return std::move(part).finish();
}

CorpusSplit split_corpus(const TokenStream& stream, const SplitOptions& options) {
  BRISK_CHECK(options.validation_fraction >= 0 && options.validation_fraction < 1, "validation_fraction = {}",
              options.validation_fraction);
  const auto without_validation = [&](const char* why) {
    return CorpusSplit{
        whole_corpus(stream, options.max_length, options.weights, options.scratch_directory, options.stride), {}, why};
  };
  if (options.validation_fraction == 0) return without_validation("no validation part (validation_fraction is 0)");
  const int64_t documents = stream.documents();
  if (documents == 1) return split_single_document(stream, options);
  TextLottery lottery(stream, options.seed);
  if (!lottery.choose(validation_share(options.validation_fraction, documents))) {
    return without_validation("no validation part: too few different documents");
  }
  PartBuilder train(stream, options.max_length, options.weights, options.scratch_directory, options.stride);
  PartBuilder validation(stream, options.max_length, {}, options.scratch_directory, options.stride);
  for_each_document(stream, [&](int64_t document, int64_t source) {
    (lottery.chosen(document) ? validation : train).add_document(document, source);
  });
  CorpusSplit split{std::move(train).finish(), std::move(validation).finish(), ""};
  split.note = fmt::format("validation: {} of {}, {:.1f} % of the tokens", split.validation.lengths.documents(),
                           plural(documents, "document"),
                           100.0 * static_cast<double>(split.validation.rows()) /
                               static_cast<double>(split.validation.rows() + split.train.rows()));
  return split;
}

}  // namespace brisk
