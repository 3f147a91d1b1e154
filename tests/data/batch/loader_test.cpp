#include "data/batch/loader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "data/batch/chunk_sequences.h"
#include "data/batch/packer.h"
#include "data/corpus/corpus.h"
#include "support/broken_system.h"

namespace brisk {
namespace {

// Token i of the stream is i, so a row says where it comes from; document ends too.
std::shared_ptr<const TokenStream> numbered_stream(int64_t documents, int longest, uint64_t seed = 1) {
  std::vector<std::vector<int32_t>> texts;
  int32_t token = 0;
  for (int64_t i = 0; i < documents; ++i) {
    ++token;
    std::vector<int32_t>& text = texts.emplace_back(mix64(seed ^ static_cast<uint64_t>(i)) % longest);
    for (int32_t& value : text) value = token++;
  }
  return TokenStream::from_documents(texts, 0);
}

bool operator==(const MicroBatch& a, const MicroBatch& b) {
  const MicroBatch::Set &x = a.sets[0], &y = b.sets[0];
  return x.tokens == y.tokens && x.targets == y.targets && x.starts == y.starts && x.position == y.position &&
         x.sequence == y.sequence && x.longest == y.longest;
}

void expect_same(const StepBatch& a, const StepBatch& b) {
  EXPECT_EQ(a.cursor, b.cursor);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.sequences, b.sequences);
  EXPECT_EQ(a.valid_tokens, b.valid_tokens);
  EXPECT_EQ(a.last_of_epoch, b.last_of_epoch);
  ASSERT_EQ(a.micro_batches.size(), b.micro_batches.size());
  for (size_t i = 0; i < a.micro_batches.size(); ++i) EXPECT_TRUE(a.micro_batches[i] == b.micro_batches[i]);
}

// Sequence number to its (token, target) rows, however the step was divided.
std::map<int32_t, std::vector<std::pair<int32_t, int32_t>>> sequences_of(const std::vector<MicroBatch>& batches) {
  std::map<int32_t, std::vector<std::pair<int32_t, int32_t>>> sequences;
  for (const MicroBatch& batch : batches) {
    for (int64_t row = 0; row < batch.rows(); ++row) {
      auto& sequence = sequences[batch.sets[0].sequence[row]];
      EXPECT_EQ(batch.sets[0].position[row], static_cast<int32_t>(sequence.size()));
      sequence.emplace_back(batch.sets[0].tokens[row], batch.sets[0].targets[row]);
    }
  }
  return sequences;
}

std::vector<MicroBatch> packed(const std::shared_ptr<const TokenStream>& stream, const std::vector<Chunk>& chunks,
                               int64_t micro_batch_tokens) {
  std::vector<int64_t> all(chunks.size());
  std::iota(all.begin(), all.end(), 0);
  return pack_step(*text_sequences(stream, chunks), all, 0, {micro_batch_tokens});
}

TEST(Packer, GivesRowsTargetsPositionsAndSequencesExactly) {
  // 0 1 2 3 | 0 4 | 0: with chunks of 3, the remainder of the first document reads 3 and predicts the end.
  const auto stream = TokenStream::from_documents({{1, 2, 3}, {4}}, 0);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 3).chunks;
  const std::vector<MicroBatch> batches = packed(stream, chunks, 100);
  ASSERT_EQ(batches.size(), 1u);
  const MicroBatch& batch = batches[0];
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(batch.sets[0].tokens, (Ids{0, 1, 2, 3, 0, 4}));
  EXPECT_EQ(batch.sets[0].targets, (Ids{1, 2, 3, 0, 4, 0}));
  EXPECT_EQ(batch.sets[0].starts, (Ids{0, 3, 4, 6}));
  EXPECT_EQ(batch.sets[0].position, (Ids{0, 1, 2, 0, 0, 1}));
  EXPECT_EQ(batch.sets[0].sequence, (Ids{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(batch.sets[0].longest, 3);
  EXPECT_EQ(batch.sequences(), 3);
}

TEST(Loader, LeavesOutALastStepOfFewSequencesWhereItMay) {
  const auto steps = [](int64_t draws, int64_t droppable) {
    return steps_of_epoch(draws, {.sequences_per_step = 8, .droppable_sequences = droppable});
  };
  EXPECT_EQ(steps(16, 0), 2);
  EXPECT_EQ(steps(17, 0), 3);
  EXPECT_EQ(steps(17, 6), 2);
  EXPECT_EQ(steps(22, 6), 2);
  EXPECT_EQ(steps(23, 6), 3) << "as many batches as it wants, the last of them smaller";
  EXPECT_EQ(steps(16, 6), 2);
  EXPECT_EQ(steps(3, 6), 1) << "an epoch has a step";

  const auto stream = TokenStream::from_documents({std::vector<int32_t>(103, 1)}, 0);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 4).chunks;  // 26
  Loader loader(text_sequences(stream, chunks),
                {.sequences_per_step = 8, .micro_batch_rows = {64}, .droppable_sequences = 6});
  ASSERT_EQ(loader.steps_per_epoch(), 3);
  for (int i = 0; i < 7; ++i) {
    const StepBatch step = loader.next();
    EXPECT_EQ(step.sequences, 8);
    EXPECT_EQ(step.last_of_epoch, i % 3 == 2);
  }
}

TEST(Packer, TheLastTokenOfAChunkPredictsTheFirstOfTheNext) {
  const auto stream = numbered_stream(1, 1000);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  ASSERT_GT(chunks.size(), 3u);
  const auto sequences = sequences_of(packed(stream, chunks, 64));
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    EXPECT_EQ(sequences.at(static_cast<int32_t>(i)).back().second,
              sequences.at(static_cast<int32_t>(i) + 1).front().first);
  }
  EXPECT_EQ(sequences.rbegin()->second.back().second, 0);
}

TEST(Packer, DividesAStepWithoutChangingItsSequences) {
  const auto stream = numbered_stream(60, 40);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 32).chunks;
  const auto whole = sequences_of(packed(stream, chunks, 1 << 20));
  EXPECT_EQ(whole.size(), chunks.size());
  for (const int64_t budget : {32, 33, 64, 100, 500}) {
    const std::vector<MicroBatch> batches = packed(stream, chunks, budget);
    for (const MicroBatch& batch : batches) {
      EXPECT_LE(batch.rows(), budget);
      EXPECT_EQ(batch.sets[0].starts.back(), batch.rows());
      int64_t longest = 0;
      for (int64_t i = 0; i < batch.sequences(); ++i) {
        EXPECT_LT(batch.sets[0].starts[i], batch.sets[0].starts[i + 1]);
        longest = std::max<int64_t>(longest, batch.sets[0].starts[i + 1] - batch.sets[0].starts[i]);
      }
      EXPECT_EQ(batch.sets[0].longest, longest);
    }
    EXPECT_EQ(sequences_of(batches), whole) << budget;
  }
}

TEST(Packer, BalancesTheRowsOfMicroBatches) {
  const std::vector<int64_t> lengths(33, 128);  // 4224 rows: a whole micro-batch of 4096 and 128 more
  const auto members = divide_step({lengths}, {4096});
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].size(), 17u);
  EXPECT_EQ(members[1].size(), 16u);
}

TEST(Packer, TakesOneMoreMicroBatchWhereWholeSequencesDoNotFitExactly) {
  const std::vector<int64_t> lengths(3, 6);  // 18 rows in two of 9 would split a sequence
  EXPECT_EQ(divide_step({lengths}, {9}).size(), 3u);
  EXPECT_TRUE(divide_step({{}}, {9}).empty());
  // Many short sequences: a GPU cannot number more in one micro-batch.
  const std::vector<int64_t> short_ones(static_cast<size_t>(2 * kMostSequences + 1), 1);
  const auto many = divide_step({short_ones}, {int64_t{1} << 24});
  EXPECT_EQ(many.size(), 3u);
  for (const auto& part : many) EXPECT_LE(std::ssize(part), kMostSequences);
  EXPECT_THROW(divide_step({lengths}, {5}), InternalError);
}

TEST(Packer, AMicroBatchIsFullWhenOneOfItsRowSetsIs) {
  // Rows of sources and of targets: the first two and the last two would each be too many targets together.
  const std::vector<int64_t> sources = {4, 4, 1, 1}, targets = {5, 5, 4, 4};
  for (const auto& part : divide_step({sources, targets}, {100, 9})) {
    int64_t rows = 0;
    for (const int32_t number : part) rows += targets[static_cast<size_t>(number)];
    EXPECT_LE(rows, 9);
    EXPECT_EQ(part.size(), 2u);
  }
  EXPECT_EQ(divide_step({sources, targets}, {100, 18}).size(), 1u);
  EXPECT_EQ(divide_step({sources, targets}, {4, 18}).size(), 3u);
  EXPECT_THROW(divide_step({sources, targets}, {100, 4}), InternalError);
}

TEST(EvaluationPacker, DeliversEveryChunkOnceInOrder) {
  const auto stream = numbered_stream(100, 50);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 20).chunks;
  const auto sequences = text_sequences(stream, chunks);
  EvaluationPacker packer(*sequences, {.rows = {64}});
  MicroBatch batch;
  int64_t rows = 0;
  int32_t sequence = 0;
  while (packer.next(batch)) {
    EXPECT_LE(batch.rows(), 64);
    EXPECT_EQ(batch.sets[0].sequence.front(), sequence);
    sequence += static_cast<int32_t>(batch.sequences());
    for (int64_t row = 0; row < batch.rows(); ++row, ++rows) {
      ASSERT_EQ(batch.sets[0].tokens[row], stream->token(rows));
      ASSERT_EQ(batch.sets[0].targets[row], stream->token(rows + 1));
    }
  }
  EXPECT_EQ(rows, stream->rows());
  EXPECT_EQ(sequence, static_cast<int32_t>(chunks.size()));
  EXPECT_FALSE(packer.next(batch));
}

TEST(Shuffle, IsAPermutationForEveryCount) {
  for (const int64_t count : {1, 2, 3, 4, 5, 16, 17, 100, 4096, 4097}) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = shuffled_index(7, 3, i, count);
      ASSERT_TRUE(index >= 0 && index < count);
      seen.insert(index);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
  }
}

TEST(Shuffle, PutsEachElementEverywhereEquallyOften) {
  constexpr int64_t kCount = 10, kEpochs = 20000;
  std::vector<int64_t> hits(kCount * kCount);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (int64_t i = 0; i < kCount; ++i) ++hits[i * kCount + shuffled_index(1, epoch, i, kCount)];
  }
  // 2000 expected, standard deviation 42.
  for (const int64_t count : hits) EXPECT_NEAR(static_cast<double>(count), 2000, 250);
}

TEST(Shuffle, DiffersBetweenEpochsAndSeedsAndStaysWhatItIs) {
  const auto order = [](uint64_t seed, int64_t epoch) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < 8; ++i) indices.push_back(shuffled_index(seed, epoch, i, 100));
    return indices;
  };
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  // A run that is resumed with a newer brisk must see the same order: these numbers may never change.
  EXPECT_EQ(order(1, 0), (std::vector<int64_t>{0, 62, 26, 92, 37, 13, 21, 12}));
}

TEST(Loader, DeliversEveryChunkExactlyOnceAnEpoch) {
  const auto stream = numbered_stream(500, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  Loader loader(text_sequences(stream, chunks),
                {.sequences_per_step = 7, .micro_batch_rows = {40}, .seed = 5, .workers = 2});
  EXPECT_EQ(loader.steps_per_epoch(), static_cast<int64_t>((chunks.size() + 6) / 7));
  std::vector<int32_t> first_tokens_of_epoch[2];
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<int32_t> targets;
    int64_t sequences = 0;
    for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
      const StepBatch batch = loader.next();
      EXPECT_EQ(batch.cursor, (DataCursor{epoch, step}));
      EXPECT_EQ(batch.last_of_epoch, step + 1 == loader.steps_per_epoch());
      EXPECT_EQ(batch.next, batch.last_of_epoch ? (DataCursor{epoch + 1, 0}) : (DataCursor{epoch, step + 1}));
      int64_t rows = 0;
      for (const MicroBatch& part : batch.micro_batches) {
        rows += part.rows();
        targets.insert(part.sets[0].targets.begin(), part.sets[0].targets.end());
      }
      EXPECT_EQ(rows, batch.valid_tokens);
      EXPECT_EQ(sequences_of(batch.micro_batches).size(), static_cast<size_t>(batch.sequences));
      sequences += batch.sequences;
      first_tokens_of_epoch[epoch].push_back(batch.micro_batches[0].sets[0].tokens[0]);
    }
    EXPECT_EQ(sequences, static_cast<int64_t>(chunks.size()));
    std::multiset<int32_t> expected;
    for (int64_t row = 0; row < stream->rows(); ++row) expected.insert(stream->token(row + 1));
    EXPECT_EQ(targets, expected);
  }
  EXPECT_NE(first_tokens_of_epoch[0], first_tokens_of_epoch[1]);
}

TEST(Loader, DeliversTheSameForAnyNumberOfWorkers) {
  const auto stream = numbered_stream(300, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  LoaderOptions options{.sequences_per_step = 8, .micro_batch_rows = {50}, .seed = 9, .workers = 0};
  std::vector<StepBatch> expected;
  {
    Loader loader(text_sequences(stream, chunks), options);
    for (int64_t i = 0; i < 2 * loader.steps_per_epoch() + 3; ++i) expected.push_back(loader.next());
  }
  for (const int workers : {1, 2, 4}) {
    options.workers = workers;
    Loader loader(text_sequences(stream, chunks), options);
    for (const StepBatch& batch : expected) expect_same(loader.next(), batch);
  }
}

TEST(Loader, DeliversTheSameWhereNoThreadCanBeStarted) {
  const auto stream = numbered_stream(50, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  LoaderOptions options{.sequences_per_step = 8, .micro_batch_rows = {50}, .seed = 9, .workers = 0};
  const StepBatch expected = Loader(text_sequences(stream, chunks), options).next();
  options.workers = 2;
  BRISK_EXPECT_CHILD_PASSES([&] {
    test::lose_privileges();  // the limit does not bind root
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NPROC, &none);
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    expect_same(Loader(text_sequences(stream, chunks), options).next(), expected);
  });
}

TEST(Loader, ResumesAtAnyCursor) {
  const auto stream = numbered_stream(50, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  LoaderOptions options{.sequences_per_step = 8, .micro_batch_rows = {50}, .seed = 9, .workers = 2};
  std::vector<StepBatch> expected;
  Loader first(text_sequences(stream, chunks), options);
  for (int64_t i = 0; i < 3 * first.steps_per_epoch(); ++i) expected.push_back(first.next());
  for (size_t at = 0; at + 1 < expected.size(); ++at) {
    options.start = expected[at].next;
    Loader resumed(text_sequences(stream, chunks), options);
    EXPECT_EQ(resumed.cursor(), options.start);
    expect_same(resumed.next(), expected[at + 1]);
  }
  options.start = {1, first.steps_per_epoch()};  // the end of an epoch is the beginning of the next
  Loader resumed(text_sequences(stream, chunks), options);
  EXPECT_EQ(resumed.next().cursor, (DataCursor{2, 0}));
}

TEST(Loader, RefusesACursorThatIsNotInTheData) {
  const auto stream = numbered_stream(20, 10);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  LoaderOptions options{.sequences_per_step = 8, .micro_batch_rows = {50}};
  options.start = {0, 1000};
  EXPECT_THROW(Loader(text_sequences(stream, chunks), options), UserError);
}

TEST(Loader, GivesTheSameSequencesHoweverAStepIsDivided) {
  const auto stream = numbered_stream(100, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  LoaderOptions small{.sequences_per_step = 8, .micro_batch_rows = {16}}, large = small;
  large.micro_batch_rows = {10000};
  Loader divided(text_sequences(stream, chunks), small), whole(text_sequences(stream, chunks), large);
  for (int64_t i = 0; i < whole.steps_per_epoch(); ++i) {
    const StepBatch a = divided.next(), b = whole.next();
    EXPECT_EQ(b.micro_batches.size(), 1u);
    EXPECT_EQ(a.valid_tokens, b.valid_tokens);
    EXPECT_EQ(a.sequences, b.sequences);
    EXPECT_EQ(sequences_of(a.micro_batches), sequences_of(b.micro_batches));
  }
}

TEST(Loader, KeepsTheOrderOfTheChunksWithoutShuffling) {
  const auto stream = numbered_stream(20, 10);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 4).chunks;
  Loader loader(text_sequences(stream, chunks), {.sequences_per_step = 1, .micro_batch_rows = {4}, .shuffle = false});
  for (const Chunk& chunk : chunks)
    EXPECT_EQ(loader.next().micro_batches[0].sets[0].tokens[0], stream->token(chunk.begin));
}

TEST(Loader, HandlesSequencesOfLengthOne) {
  const auto stream = TokenStream::from_documents({{}, {}, {}}, 0);  // three documents that end at once
  const std::vector<Chunk> chunks = whole_corpus(*stream, 1).chunks;
  Loader loader(text_sequences(stream, chunks), {.sequences_per_step = 2, .micro_batch_rows = {1}});
  const StepBatch first = loader.next(), last = loader.next();
  EXPECT_EQ(first.micro_batches.size(), 2u);
  EXPECT_EQ(first.micro_batches[1].sets[0].sequence, (std::vector<int32_t>{1}));
  EXPECT_EQ(last.sequences, 1);
  EXPECT_TRUE(last.last_of_epoch);
}

TEST(Loader, MayBeDestroyedAtAnyTime) {
  const auto stream = numbered_stream(200, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  for (int steps = 0; steps < 30; ++steps) {
    Loader loader(text_sequences(stream, chunks), {.sequences_per_step = 4, .micro_batch_rows = {64}, .workers = 3});
    for (int i = 0; i < steps % 10; ++i) loader.next();
  }
}

TEST(Loader, ThrowsWhatFailedInAWorkerFromNext) {
  const auto stream = numbered_stream(20, 10);
  std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  chunks.back().begin = stream->tokens() + 5;  // past the end: a fault that only the worker meets
  Loader loader(text_sequences(stream, chunks),
                {.sequences_per_step = 4, .micro_batch_rows = {64}, .workers = 2, .shuffle = false});
  for (int64_t i = 0; i + 1 < loader.steps_per_epoch(); ++i) EXPECT_NO_THROW(loader.next());
  EXPECT_THROW(loader.next(), InternalError);
  EXPECT_NO_THROW(loader.next());  // the next epoch begins
}

TEST(Loader, DeliversTenThousandDocumentsInAMoment) {
  const auto stream = numbered_stream(10000, 200);
  const CorpusSplit split = split_corpus(*stream, {.max_length = 128, .validation_fraction = 0.05, .seed = 1});
  Loader loader(text_sequences(stream, split.train.chunks),
                {.sequences_per_step = 32, .micro_batch_rows = {4096}, .workers = 1});
  int64_t rows = 0;
  for (int64_t i = 0; i < loader.steps_per_epoch(); ++i) rows += loader.next().valid_tokens;
  EXPECT_EQ(rows, split.train.rows());
}

// How often each chunk is delivered in each of `epochs` epochs.
std::vector<std::vector<int64_t>> deliveries(const std::vector<SourceShare>& sources, int64_t epochs) {
  int64_t count = 0;
  for (const SourceShare& source : sources) count += source.chunks;
  std::vector<std::vector<int32_t>> documents;  // chunk i is the end-of-document token 0 and token i + 1
  std::vector<Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    documents.push_back({static_cast<int32_t>(i + 1)});
    chunks.push_back({2 * i, 2});
  }
  Loader loader(text_sequences(TokenStream::from_documents(documents, 0), chunks),
                {.sequences_per_step = 8, .micro_batch_rows = {16}, .seed = 3, .workers = 0, .sources = sources});
  std::vector<std::vector<int64_t>> hits;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    hits.emplace_back(static_cast<size_t>(count));
    for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
      const StepBatch delivered = loader.next();
      for (const MicroBatch& batch : delivered.micro_batches) {
        for (const int32_t token : batch.sets[0].tokens) {
          if (token > 0) ++hits.back()[static_cast<size_t>(token - 1)];
        }
      }
    }
  }
  return hits;
}

TEST(Weights, SayHowOftenAnEpochDrawsASequence) {
  // Twice, once, and half of them: the other half comes in the next epoch.
  const auto hits =
      deliveries({{.chunks = 10, .draws = 20}, {.chunks = 30, .draws = 30}, {.chunks = 20, .draws = 10}}, 4);
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(hits[static_cast<size_t>(epoch)][i], 2);
    for (size_t i = 10; i < 40; ++i) EXPECT_EQ(hits[static_cast<size_t>(epoch)][i], 1);
  }
  int64_t drawn = 0, of_the_last = 0;
  for (size_t i = 40; i < 60; ++i) {
    EXPECT_EQ(hits[0][i] + hits[1][i], 1);
    EXPECT_EQ(hits[2][i] + hits[3][i], 1);
    drawn += hits[0][i];
    of_the_last += i >= 50 ? hits[0][i] : 0;
  }
  EXPECT_EQ(drawn, 10);
  EXPECT_GT(of_the_last, 0);  // the half is chosen from all over the source
  EXPECT_LT(of_the_last, 10);
}

TEST(Weights, OfAnySizeDrawAllSequencesEquallyOftenOverEpochs) {
  const auto hits = deliveries({{.chunks = 17, .draws = 24}, {.chunks = 5, .draws = 5}}, 17);
  for (size_t i = 0; i < 17; ++i) {
    int64_t sum = 0;
    for (const auto& epoch : hits) sum += epoch[i];
    EXPECT_EQ(sum, 24);  // 17 epochs of 24 draws are 24 passes over 17
  }
  int64_t of_first_epoch = 0;
  for (size_t i = 0; i < 17; ++i) of_first_epoch += hits[0][i];
  EXPECT_EQ(of_first_epoch, 24);
}

TEST(Weights, OfOneChangeNothingInTheOrder) {
  const auto stream = numbered_stream(300, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  const int64_t count = std::ssize(chunks);
  const LoaderOptions plain{.sequences_per_step = 7, .micro_batch_rows = {64}, .seed = 5, .workers = 0};
  LoaderOptions divided = plain;
  divided.sources = {{.chunks = 40, .draws = 40}, {.chunks = count - 40, .draws = count - 40}};
  Loader a(text_sequences(stream, chunks), plain), b(text_sequences(stream, chunks), divided);
  for (int i = 0; i < 60; ++i) expect_same(a.next(), b.next());
}

TEST(Weights, AreResumedAtAnyStep) {
  const auto stream = numbered_stream(300, 30);
  const std::vector<Chunk> chunks = whole_corpus(*stream, 16).chunks;
  const int64_t count = std::ssize(chunks);
  LoaderOptions options{.sequences_per_step = 7, .micro_batch_rows = {64}, .seed = 5, .workers = 1};
  options.sources = {{.chunks = 40, .draws = 90}, {.chunks = count - 40, .draws = (count - 40) / 3}};
  Loader first(text_sequences(stream, chunks), options);
  for (int64_t i = 0; i < 2 * first.steps_per_epoch() + 3; ++i) {
    const StepBatch step = first.next();
    options.start = step.cursor;
    Loader resumed(text_sequences(stream, chunks), options);
    expect_same(step, resumed.next());
  }
}

// Notes what is hinted at, and whether that was before it was wanted.
class HintedSequences : public Sequences {
 public:
  int64_t count() const override { return 23; }
  int64_t rows(int64_t /*index*/, int /*set*/) const override { return 1; }
  LengthTotals totals(int /*set*/) const override { return {.longest = 1, .rows = 23, .squares = 23}; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const std::lock_guard lock(mutex_);
    late += hints_[index]-- == 0;
    batch.sets[0].tokens.push_back(static_cast<int32_t>(index));
    batch.sets[0].targets.push_back(0);
    batch.sets[0].position.push_back(0);
    batch.sets[0].sequence.push_back(sequence);
    batch.sets[0].end_sequence(batch.sets[0].tokens.size());
  }
  bool has_prefetch() const override { return true; }
  void prefetch(std::span<const int64_t> indices) const override {
    const std::lock_guard lock(mutex_);
    for (const int64_t index : indices) ++hints_[index];
    hinted += std::ssize(indices);
  }
  mutable std::atomic<int64_t> late = 0, hinted = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::map<int64_t, int64_t> hints_;
};

TEST(Loader, HintsAtEverySequenceBeforeItIsWanted) {
  for (const int workers : {0, 1}) {
    for (const StepShare share : {StepShare{}, StepShare{.parts = 4, .first = 1, .count = 2}}) {
      const auto sequences = std::make_shared<const HintedSequences>();
      int64_t delivered = 0;
      {
        Loader loader(sequences, {.sequences_per_step = 8, .workers = workers, .share = share});
        for (int i = 0; i < 20; ++i) delivered += loader.next().sequences;
      }
      EXPECT_EQ(sequences->late, 0) << workers << " workers";
      const int64_t most = delivered + 8 * 8;  // four steps ahead, and two that they hint at
      EXPECT_GE(sequences->hinted, delivered);
      EXPECT_LE(sequences->hinted, most) << "once for each";
    }
  }
}

TEST(EvaluationPacker, HintsAtEverySequenceBeforeItIsWanted) {
  const HintedSequences sequences;
  EvaluationPacker packer(sequences, {.rows = {4}, .count = 21});
  MicroBatch batch;
  while (packer.next(batch)) {
  }
  EXPECT_EQ(sequences.late, 0);
  EXPECT_EQ(sequences.hinted, 21);
}

}  // namespace
}  // namespace brisk
