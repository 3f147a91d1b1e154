#include "data/corpus/corpus.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "data/batch/chunk_sequences.h"
#include "data/batch/loader.h"
#include "data/corpus/duplicates.h"
#include "data/corpus/statistics.h"

namespace brisk {
namespace {

using Chunks = std::vector<Chunk>;

// Documents of these many tokens each.
std::shared_ptr<const TokenStream> stream_of(const std::vector<int>& lengths) {
  std::vector<std::vector<int32_t>> documents;
  int32_t token = 1;
  for (const int length : lengths) {
    std::vector<int32_t>& document = documents.emplace_back(length);
    for (int32_t& value : document) value = token++;
  }
  return TokenStream::from_documents(documents, 0);
}

TEST(Chunks, KeepTheRemainderOfALongDocument) {
  const auto stream = stream_of({6, 2, 3});  // 7, 3 and 4 rows
  EXPECT_EQ(whole_corpus(*stream, 3).chunks, (Chunks{{0, 3}, {3, 3}, {6, 1}, {7, 3}, {10, 3}, {13, 1}}));
  EXPECT_EQ(whole_corpus(*stream, 100).chunks, (Chunks{{0, 7}, {7, 3}, {10, 4}}));
  EXPECT_EQ(whole_corpus(*stream, 1).chunks.size(), 14u);
}

TEST(Chunks, WithAStrideOverlapUntilOneReachesTheEndOfTheDocument) {
  const auto stream = stream_of({9, 2, 3});  // 10, 3 and 4 rows
  const CorpusPart part = whole_corpus(*stream, 4, {}, "", 2);
  EXPECT_EQ(part.chunks, (Chunks{{0, 4}, {2, 4}, {4, 4}, {6, 4}, {10, 3}, {13, 4}}));
  EXPECT_EQ(part.rows(), 23);
  EXPECT_EQ(part.rows_per_epoch(), 23);
  EXPECT_EQ(part.lengths.longest(), 10);
  EXPECT_EQ(whole_corpus(*stream_of({10}), 4, {}, "", 2).chunks, (Chunks{{0, 4}, {2, 4}, {4, 4}, {6, 4}, {8, 3}}));
  EXPECT_EQ(whole_corpus(*stream, 4, {}, "", 4).chunks, whole_corpus(*stream, 4).chunks);
}

TEST(Chunks, CoverEveryRowOnce) {
  const auto stream = stream_of({1, 50, 7, 8, 9, 23});
  for (const int64_t max_length : {1, 2, 5, 8, 9, 64}) {
    int64_t expected = 0;
    for (const Chunk& chunk : whole_corpus(*stream, max_length).chunks) {
      EXPECT_EQ(chunk.begin, expected);
      EXPECT_LE(chunk.length, max_length);
      EXPECT_GT(chunk.length, 0);
      expected += chunk.length;
    }
    EXPECT_EQ(expected, stream->rows());
  }
}

TEST(Split, IsByDocumentAndLosesNothing) {
  const auto stream = stream_of(std::vector<int>(200, 10));
  const CorpusSplit split = split_corpus(*stream, {.max_length = 4, .validation_fraction = 0.1, .seed = 3});
  EXPECT_EQ(split.validation.lengths.documents(), 20);
  EXPECT_EQ(split.train.lengths.documents(), 180);
  EXPECT_EQ(split.train.rows() + split.validation.rows(), stream->rows());
  std::set<int64_t> train_documents, validation_documents;
  for (const Chunk& chunk : split.train.chunks) train_documents.insert(chunk.begin / 11);
  for (const Chunk& chunk : split.validation.chunks) validation_documents.insert(chunk.begin / 11);
  EXPECT_EQ(train_documents.size(), 180u);
  EXPECT_EQ(validation_documents.size(), 20u);
  for (const int64_t document : validation_documents) EXPECT_EQ(train_documents.count(document), 0u);
  EXPECT_EQ(split.note, "validation: 20 of 200 documents, 10.0 % of the tokens");
}

TEST(Split, DependsOnTheSeedAndTheTextsAlone) {
  const auto stream = stream_of(std::vector<int>(100, 5));
  const auto documents = [](const TokenStream& from, uint64_t seed) {
    std::vector<int64_t> numbers;
    const int64_t rows = from.document_rows(0).size();
    for (const Chunk& chunk : split_corpus(from, {100, 0.2, seed}).validation.chunks)
      numbers.push_back(chunk.begin / rows);
    return numbers;
  };
  EXPECT_EQ(documents(*stream, 1), documents(*stream, 1));
  EXPECT_NE(documents(*stream, 1), documents(*stream, 2));
}

TEST(Split, GivesEachPartAtLeastOneDocument) {
  const auto stream = stream_of({5, 5, 5});
  EXPECT_EQ(split_corpus(*stream, {8, 0.001, 1}).validation.lengths.documents(), 1);
  EXPECT_EQ(split_corpus(*stream, {8, 0.999, 1}).train.lengths.documents(), 1);
}

// The hashes of the documents that the chunks of a part come from.
std::multiset<uint64_t> texts_of(const TokenStream& stream, const CorpusPart& part) {
  std::set<int64_t> begins;
  for (const Chunk& chunk : part.chunks) begins.insert(chunk.begin);
  std::multiset<uint64_t> texts;
  for (int64_t document = 0; document < stream.documents(); ++document) {
    if (begins.contains(stream.document_rows(document).begin)) texts.insert(stream.document_hash(document));
  }
  return texts;
}

TEST(Split, PutsAllCopiesOfATextOnOneSide) {
  std::vector<std::vector<int32_t>> documents;
  for (int32_t i = 0; i < 400; ++i) documents.push_back({i % 150 + 1, 7, i % 150 + 1});  // two or three copies of each
  const auto stream = TokenStream::from_documents(documents, 0);
  for (const uint64_t seed : {1, 2, 3}) {
    const CorpusSplit split = split_corpus(*stream, {.max_length = 2, .validation_fraction = 0.2, .seed = seed});
    const auto train = texts_of(*stream, split.train), validation = texts_of(*stream, split.validation);
    EXPECT_EQ(train.size() + validation.size(), 400u);
    EXPECT_NEAR(static_cast<double>(validation.size()), 80, 3);
    for (const uint64_t text : validation) EXPECT_FALSE(train.contains(text));
  }
}

TEST(Split, LeavesATextOfVeryManyCopiesToTraining) {
  std::vector<std::vector<int32_t>> documents(90, {1, 2, 3});
  for (int32_t i = 0; i < 10; ++i) documents.push_back({i + 10});
  const auto stream = TokenStream::from_documents(documents, 0);
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const CorpusSplit split = split_corpus(*stream, {.max_length = 8, .validation_fraction = 0.05, .seed = seed});
    EXPECT_EQ(split.validation.lengths.documents(), 5) << seed;
    EXPECT_EQ(split.validation.lengths.longest(), 2) << seed;  // none of the many
  }
  const auto same = TokenStream::from_documents(std::vector<std::vector<int32_t>>(9, {1, 2}), 0);
  const CorpusSplit split = split_corpus(*same, {8, 0.2, 1});
  EXPECT_TRUE(split.validation.chunks.empty());
  EXPECT_EQ(split.train.lengths.documents(), 9);
  EXPECT_EQ(split.note, "no validation part: too few different documents");
}

TEST(Split, KeepsSourcesApartAndCountsTheirDraws) {
  const auto joined = TokenStream::join({stream_of(std::vector<int>(40, 9)), stream_of(std::vector<int>(20, 4))});
  const CorpusSplit split =
      split_corpus(*joined, {.max_length = 5, .validation_fraction = 0.1, .seed = 1, .weights = {0.5, 3}});
  ASSERT_EQ(split.train.sources.size(), 2u);
  const SourceShare &first = split.train.sources[0], &second = split.train.sources[1];
  EXPECT_EQ(first.chunks, 2 * first.documents);
  EXPECT_EQ(second.chunks, second.documents);
  EXPECT_EQ(first.chunks + second.chunks, std::ssize(split.train.chunks));
  EXPECT_EQ(first.draws, first.documents);
  EXPECT_EQ(second.draws, 3 * second.documents);
  EXPECT_EQ(split.train.sequences_per_epoch(), first.draws + second.draws);
  EXPECT_DOUBLE_EQ(split.train.rows_per_epoch(), 5.0 * static_cast<double>(first.documents + 3 * second.documents));
  for (const Chunk& chunk : split.train.chunks) {
    std::vector<int32_t> tokens(static_cast<size_t>(chunk.length) + 1);
    joined->copy(chunk.begin, chunk.length + 1, tokens.data());  // each chunk lies within its source
  }
}

TEST(ChunkList, ThatIsLongLiesInAFileWithoutAName) {
  std::string name = (std::filesystem::temp_directory_path() / "brisk-chunks-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  Chunks expected;
  ChunkListBuilder builder(name, 100);
  for (int32_t i = 0; i < 1050; ++i) {
    expected.push_back({i * int64_t{10}, i % 7 + 1});
    builder.add(expected.back());
  }
  {
    const ChunkList chunks = std::move(builder).finish();
    const ChunkList copy = chunks;
    EXPECT_EQ(copy, expected);
    EXPECT_EQ(copy.longest(), 7);
    EXPECT_EQ(copy.rows(), ChunkList(expected).rows());
    EXPECT_DOUBLE_EQ(copy.squared_rows(), ChunkList(expected).squared_rows());
    EXPECT_TRUE(std::filesystem::is_empty(name));
  }
  std::filesystem::remove_all(name);
}

TEST(Split, OfASingleDocumentTakesItsLastChunks) {
  const auto stream = stream_of({99});
  const CorpusSplit split = split_corpus(*stream, {10, 0.2, 1});
  EXPECT_EQ(split.train.chunks.size(), 8u);
  EXPECT_EQ(split.validation.chunks, (Chunks{{80, 10}, {90, 10}}));
  EXPECT_EQ(split.train.lengths.longest(), 80);
  EXPECT_EQ(split.note, "validation: the last 2 of 10 sequences of the one document");
}

TEST(Split, OfASingleDocumentTrainsOnNoRowThatItValidatesOn) {
  const CorpusSplit split = split_corpus(*stream_of({99}), {.max_length = 10, .validation_fraction = 0.2, .stride = 5});
  EXPECT_EQ(split.validation.chunks, (Chunks{{75, 10}, {80, 10}, {85, 10}, {90, 10}}));
  EXPECT_EQ(split.train.chunks.size(), 14u);
  EXPECT_EQ(split.train.chunks[13], (Chunk{65, 10}));
  EXPECT_EQ(split.validation.lengths.longest(), 25);
  EXPECT_TRUE(split_corpus(*stream_of({9}), {.max_length = 8, .validation_fraction = 0.5, .stride = 1})
                  .validation.chunks.empty());
}

TEST(Split, OfASingleSequenceHasNoValidationPart) {
  const CorpusSplit split = split_corpus(*stream_of({5}), {10, 0.5, 1});
  EXPECT_TRUE(split.validation.chunks.empty());
  EXPECT_EQ(split.train.chunks, (Chunks{{0, 6}}));
  EXPECT_EQ(split.note, "no validation part: the text is a single sequence of 6 tokens");
}

TEST(Split, OfFractionZeroTrainsOnEverything) {
  const auto stream = stream_of({5, 5});
  const CorpusSplit split = split_corpus(*stream, {10, 0.0, 1});
  EXPECT_TRUE(split.validation.chunks.empty());
  EXPECT_EQ(split.train.rows(), stream->rows());
}

TEST(Statistics, CountWhatIsThere) {
  std::vector<int> lengths(100);
  std::iota(lengths.begin(), lengths.end(), 0);  // 1 to 100 rows
  const CorpusPart part = whole_corpus(*stream_of(lengths), 40);
  const CorpusStatistics statistics = corpus_statistics(part, 40);
  EXPECT_EQ(statistics.documents, 100);
  EXPECT_EQ(statistics.tokens, 5050);
  EXPECT_EQ(statistics.shortest, 1);
  EXPECT_EQ(statistics.median, 50);
  EXPECT_EQ(statistics.percentile_95, 95);
  EXPECT_EQ(statistics.longest, 100);
  EXPECT_DOUBLE_EQ(statistics.mean, 50.5);
  EXPECT_EQ(statistics.documents_split, 60);
  EXPECT_EQ(statistics.chunks_of_split, 40 * 2 + 20 * 3);
  EXPECT_EQ(statistics.chunks, 40 + 140);
}

TEST(Statistics, MeasureThePackingOfTheLoadersSteps) {
  const auto stream = stream_of({9, 4, 4, 9});  // 10, 5, 5, 10 rows
  const CorpusPart part = whole_corpus(*stream, 10);
  CorpusStatistics statistics = corpus_statistics(part, 10);
  statistics.packing =
      measure_packing(*text_sequences(stream, part.chunks), {.sequences_per_step = 4, .micro_batch_rows = {20}});
  EXPECT_DOUBLE_EQ(statistics.packing.rows_per_step, 30);
  EXPECT_DOUBLE_EQ(statistics.packing.micro_batches_per_step, 2);
  EXPECT_DOUBLE_EQ(statistics.packing.packing_efficiency, 30.0 / 40);
  EXPECT_DOUBLE_EQ(statistics.packing.padded_efficiency, 30.0 / 40);
  const std::string text = statistics_text(statistics);
  EXPECT_NE(text.find("4 with 30 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("no document was longer"), std::string::npos) << text;
  EXPECT_EQ(
      step_text(statistics.packing, 10),
      "step         30 tokens on average, 75 % of 4 sequences of max_length 10, in 2.0 micro-batches; nothing is padded "
      "(padded to the longest of each step, 75 % would be tokens)");
  EXPECT_EQ(step_text(statistics.packing, 0),
            "step         30 tokens on average, in 2.0 micro-batches; nothing is padded (padded to the longest of each "
            "step, 75 % would be tokens)");
  EXPECT_NE(step_text(statistics.packing, 15).find("a larger training.batch_size"), std::string::npos);
}

TEST(Statistics, HistogramCountsByPowersOfTwo) {
  DocumentLengths lengths;
  for (const int64_t length : {1, 2, 3, 4, 5, 8, 8, 33}) lengths.add(length);
  std::vector<std::array<int64_t, 4>> bars;
  for (const auto& bar : lengths.histogram()) bars.push_back({bar.from, bar.to, bar.documents, bar.tokens});
  EXPECT_EQ(
      bars,
      (std::vector<std::array<int64_t, 4>>{
          {1, 1, 1, 1}, {2, 2, 1, 2}, {3, 4, 2, 7}, {5, 8, 3, 21}, {9, 16, 0, 0}, {17, 32, 0, 0}, {33, 64, 1, 33}}));
}

TEST(Statistics, LongLengthsAreKnownToThreePercent) {
  DocumentLengths lengths;
  for (int64_t length = 60000; length < 4000000; length += 1000) lengths.add(length);
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99}) {
    const double exact = 60000 + 1000 * (std::ceil(share * static_cast<double>(lengths.documents())) - 1);
    EXPECT_NEAR(static_cast<double>(lengths.at_share(share)), exact, 0.032 * exact) << share;
  }
  EXPECT_EQ(lengths.longest(), 3999000);
  EXPECT_EQ(lengths.at_share(1), 3999000);
}

TEST(Statistics, AreWrittenAsJson) {
  CorpusStatistics statistics = corpus_statistics(whole_corpus(*stream_of({9, 4, 4, 9}), 10), 10);
  statistics.duplicates = DuplicateCount{2, false};
  statistics.sources = {{"books", 2, 3, 20, 0.8}};
  const auto json = nlohmann::json::parse(statistics_json_text(statistics));
  EXPECT_EQ(json["documents"], 4);
  EXPECT_EQ(json["length"]["median"], 5);
  EXPECT_EQ(json["histogram"].size(), 2u);
  EXPECT_EQ(json["histogram"][1]["documents"], 2);
  EXPECT_EQ(json["duplicates"]["documents"], 2);
  EXPECT_EQ(json["sources"][0]["share_of_epoch"], 0.8);
  EXPECT_NE(statistics_text(statistics).find("2 documents are copies"), std::string::npos);
}

TEST(Duplicates, AreCountedInOnePassOrSeveralAndEstimatedBeyond) {
  std::vector<std::vector<int32_t>> documents;
  for (int32_t i = 0; i < 12000; ++i) documents.push_back({i % 9000, 1});
  const auto stream = TokenStream::from_documents(documents, 0);
  const DuplicateCount one = count_duplicates(*stream), several = count_duplicates(*stream, 4000);
  EXPECT_EQ(one.documents, 3000);
  EXPECT_EQ(several.documents, 3000);
  EXPECT_FALSE(several.estimated);
  const DuplicateCount sampled = count_duplicates(*stream, 600);
  EXPECT_TRUE(sampled.estimated);
  EXPECT_NEAR(static_cast<double>(sampled.documents), 3000, 900);
}

TEST(Duplicates, BetweenTwoStreamsAreCountedWhicheverIsLarger) {
  const auto small = TokenStream::from_documents({{1}, {2}, {2}, {9}}, 0);
  const auto large = TokenStream::from_documents({{2}, {3}, {4}, {1}, {1}, {5}, {6}}, 0);
  EXPECT_EQ(count_shared(*small, *large).documents, 3);  // 1, 2, 2
  EXPECT_EQ(count_shared(*large, *small).documents, 3);  // 2, 1, 1
  EXPECT_EQ(count_shared(*small, *large, 1).documents, 3);
}

TEST(Statistics, TextTellsOfSplitDocumentsAndLargeNumbers) {
  const CorpusPart part = whole_corpus(*stream_of({1234566, 3}), 1000);
  const std::string text = statistics_text(corpus_statistics(part, 1000));
  EXPECT_NE(text.find("2 with 1,234,571 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("1 longer document was split into 1,235"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk
