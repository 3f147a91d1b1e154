#include "data/corpus.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "data/loader.h"

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
  EXPECT_EQ(split.validation.document_lengths.size(), 20u);
  EXPECT_EQ(split.train.document_lengths.size(), 180u);
  EXPECT_EQ(split.train.rows() + split.validation.rows(), stream->rows());
  std::set<int64_t> train_documents, validation_documents;
  for (const Chunk& chunk : split.train.chunks) train_documents.insert(chunk.begin / 11);
  for (const Chunk& chunk : split.validation.chunks) validation_documents.insert(chunk.begin / 11);
  EXPECT_EQ(train_documents.size(), 180u);
  EXPECT_EQ(validation_documents.size(), 20u);
  for (const int64_t document : validation_documents) EXPECT_EQ(train_documents.count(document), 0u);
  EXPECT_EQ(split.note, "validation: 20 of 200 documents, 10.0 % of the tokens");
}

TEST(Split, DependsOnTheSeedAlone) {
  const auto stream = stream_of(std::vector<int>(100, 5)), longer = stream_of(std::vector<int>(100, 9));
  const auto documents = [](const TokenStream& from, uint64_t seed) {
    std::vector<int64_t> numbers;
    const int64_t rows = from.document_rows(0).size();
    for (const Chunk& chunk : split_corpus(from, {100, 0.2, seed}).validation.chunks)
      numbers.push_back(chunk.begin / rows);
    return numbers;
  };
  EXPECT_EQ(documents(*stream, 1), documents(*stream, 1));
  EXPECT_EQ(documents(*stream, 1), documents(*longer, 1));  // not on what the documents hold
  EXPECT_NE(documents(*stream, 1), documents(*stream, 2));
}

TEST(Split, GivesEachPartAtLeastOneDocument) {
  const auto stream = stream_of({5, 5, 5});
  EXPECT_EQ(split_corpus(*stream, {8, 0.001, 1}).validation.document_lengths.size(), 1u);
  EXPECT_EQ(split_corpus(*stream, {8, 0.999, 1}).train.document_lengths.size(), 1u);
}

TEST(Split, OfASingleDocumentTakesItsLastChunks) {
  const auto stream = stream_of({99});
  const CorpusSplit split = split_corpus(*stream, {10, 0.2, 1});
  EXPECT_EQ(split.train.chunks.size(), 8u);
  EXPECT_EQ(split.validation.chunks, (Chunks{{80, 10}, {90, 10}}));
  EXPECT_EQ(split.train.document_lengths, (std::vector<int64_t>{80}));
  EXPECT_EQ(split.note, "validation: the last 2 of 10 sequences of the one document");
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
  const CorpusPart part = whole_corpus(*stream_of({9, 4, 4, 9}), 10);  // 10, 5, 5, 10 rows
  CorpusStatistics statistics = corpus_statistics(part, 10);
  measure_packing(part.chunks, {.sequences_per_step = 4, .micro_batch_tokens = 20}, statistics);
  EXPECT_DOUBLE_EQ(statistics.rows_per_step, 30);
  EXPECT_DOUBLE_EQ(statistics.micro_batches_per_step, 2);
  EXPECT_DOUBLE_EQ(statistics.packing_efficiency, 30.0 / 40);
  EXPECT_DOUBLE_EQ(statistics.padded_efficiency, 30.0 / 40);
  const std::string text = statistics_text(statistics);
  EXPECT_NE(text.find("4 with 30 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("no document was longer"), std::string::npos) << text;
  EXPECT_NE(text.find("75.0 % of the micro-batches' capacity"), std::string::npos) << text;
}

TEST(Statistics, TextTellsOfSplitDocumentsAndLargeNumbers) {
  const CorpusPart part = whole_corpus(*stream_of({1234566, 3}), 1000);
  const std::string text = statistics_text(corpus_statistics(part, 1000));
  EXPECT_NE(text.find("2 with 1,234,571 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("1 longer document became 1,235 of them"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk
