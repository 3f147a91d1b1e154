#include "data/images/image_sequences.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "data/batch/loader.h"
#include "data/batch/packer.h"
#include "data/images/image_check.h"
#include "data/images/image_files.h"
#include "support/byte_tokenizer.h"

namespace brisk {
namespace {

// 4 x 4 pixels in patches of 2 x 2 with a class row, and 2 x 4 in patches of 2 x 2.
const ImageLayout kTwoEncoders = {.images = {ImageInput::resized(4, 4, 2, true), ImageInput::resized(2, 4, 2, false)},
                                  .fixed_rows = {1, 3}};
const ImageLayout kOneEncoder = {.images = {ImageInput::resized(4, 4, 2, true)}, .fixed_rows = {2}};

class SequencesOfImages : public ::testing::Test {
 protected:
  static constexpr int kImages = 20;
  SequencesOfImages() {
    test::write_images(folder, kImages);
    std::string texts = "image,text\n", labels = "image,label\n";
    for (int i = 0; i < kImages; ++i) {
      texts += fmt::format("imgs/{}.ppm,{}\n", i, std::string(1 + static_cast<size_t>(i % 5), 'x'));
      labels += fmt::format("imgs/{}.ppm,{}\n", i, i % 2 == 0 ? "even" : "odd");
    }
    with_texts =
        open_image_rows(open_image_table({.paths = {folder.write("texts.csv", texts)}}), &tokenizer, folder / "cache");
    with_labels = open_image_rows(open_image_table({.paths = {folder.write("labels.csv", labels)}, .labelled = true}),
                                  LabelSet({"even", "odd"}), folder / "cache");
  }
  std::shared_ptr<const ImageStore> store(const ImageLayout& layout, int threads = 0, int64_t cache_bytes = 0) {
    return std::make_shared<const ImageStore>(with_texts.image_paths(), layout.images,
                                              ImageStoreOptions{.threads = threads, .cache_bytes = cache_bytes});
  }
  ImageTextSequences texts(const ImageLayout& layout, int64_t most = 8) {
    return {with_texts.examples, store(layout), layout, frame, most};
  }
  const ScratchFolder folder;
  ByteTokenizer tokenizer{1, 258};
  const PairFrame frame{.start = 256, .end = 257};
  ImageRows with_texts, with_labels;
};

TEST_F(SequencesOfImages, HaveTheRowSetsOfTwoEncodersAndADecoder) {
  const ImageTextSequences sequences = texts(kTwoEncoders);
  EXPECT_EQ(sequences.sets(), 3);
  EXPECT_EQ(sequences.rows(7, 0), 5);
  EXPECT_EQ(sequences.rows(7, 1), 4) << "three letters and the start";
  EXPECT_EQ(sequences.rows(7, 2), 2);
  EXPECT_EQ(sequences.totals(0).rows, 100);
  EXPECT_EQ(sequences.totals(4).rows, 60) << "the second fixed set";
  MicroBatch batch;
  batch.sets.resize(3);
  sequences.append(7, 0, 0, batch);
  sequences.append(2, 0, 1, batch);
  ASSERT_EQ(batch.sets.size(), 5u);
  EXPECT_EQ(batch.sets[0].tokens, (std::vector<int32_t>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(batch.sets[0].position, (std::vector<int32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(batch.sets[0].starts, (std::vector<int32_t>{0, 5, 10}));
  std::vector<uint8_t> pixels;
  for (const uint8_t color : {7, 2}) {
    pixels.insert(pixels.end(), 12, 0);
    pixels.insert(pixels.end(), 48, color);
  }
  EXPECT_EQ(batch.sets[0].pixels, pixels);
  EXPECT_EQ(batch.sets[1].tokens, (std::vector<int32_t>{256, 'x', 'x', 'x', 256, 'x', 'x', 'x'}));
  EXPECT_EQ(batch.sets[1].targets, (std::vector<int32_t>{'x', 'x', 'x', 257, 'x', 'x', 'x', 257}));
  EXPECT_EQ(batch.sets[2].tokens, (std::vector<int32_t>(4, 0)));
  EXPECT_EQ(batch.sets[2].pixels.size(), 48u);
  EXPECT_EQ(batch.sets[3].derived_from, 0);
  EXPECT_EQ(batch.sets[4].derived_from, 0);
  EXPECT_EQ(batch.sets[4].position, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(batch.sets[4].tokens, batch.sets[4].position);
  EXPECT_EQ(batch.sets[4].sequence, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(batch.sets[4].source.empty());
  EXPECT_EQ(batch.rows(), 10 + 8 + 4) << "fixed rows are derived";
}

TEST_F(SequencesOfImages, OfLabelsHaveOneRowForEach) {
  ExampleSet examples = with_labels.examples;
  examples.set_class_weights({0.5f, 2});
  const ImageLabelSequences sequences(examples, store(kOneEncoder), kOneEncoder);
  EXPECT_EQ(sequences.sets(), 1);
  EXPECT_EQ(sequences.totals(1).rows, kImages);
  MicroBatch batch;
  sequences.append(4, 0, 0, batch);
  sequences.append(5, 0, 1, batch);
  ASSERT_EQ(batch.sets.size(), 3u);
  EXPECT_EQ(batch.sets[1].targets, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(batch.sets[1].source, (std::vector<int32_t>{0, 5}));
  EXPECT_EQ(batch.sets[1].weights, (std::vector<float>{0.5f, 2}));
  EXPECT_EQ(batch.sets[2].tokens, (std::vector<int32_t>{0, 1, 0, 1}));
}

TEST_F(SequencesOfImages, WhoseTextsAreTooLongAreLeftOutOrCut) {
  const FittingTexts fitting = fitting_image_texts(with_texts.examples, frame, 4, TooLong::skip);
  EXPECT_EQ(fitting.too_long, 8) << "of four and of five letters";
  EXPECT_EQ(fitting.examples.count(), 12);
  EXPECT_EQ(fitting_image_texts(with_texts.examples, frame, 4, TooLong::cut).examples.count(), kImages);
  const ImageTextSequences cut = texts(kOneEncoder, 4);
  EXPECT_EQ(cut.rows(4, 1), 4);
  EXPECT_EQ(cut.target_tokens(4).size(), 5u);
  MicroBatch batch;
  batch.sets.resize(2);
  cut.append(4, 0, 0, batch);
  EXPECT_EQ(batch.sets[1].targets, (std::vector<int32_t>{'x', 'x', 'x', 257}));
}

TEST_F(SequencesOfImages, AreTheSameWithAnyThreadsAndCaches) {
  const LoaderOptions options{.sequences_per_step = 6, .micro_batch_rows = {15, 40}, .seed = 3, .workers = 0};
  Loader plain(
      std::make_shared<const ImageTextSequences>(with_texts.examples, store(kOneEncoder), kOneEncoder, frame, 8),
      options);
  std::vector<StepBatch> expected;
  for (int i = 0; i < 12; ++i) expected.push_back(plain.next());
  for (const int threads : {0, 1, 3}) {
    for (const int64_t cache : {0, 7 * 48, 1 << 20}) {
      LoaderOptions with_workers = options;
      with_workers.workers = threads;
      Loader loader(std::make_shared<const ImageTextSequences>(with_texts.examples, store(kOneEncoder, threads, cache),
                                                               kOneEncoder, frame, 8),
                    with_workers);
      for (const StepBatch& step : expected) {
        const StepBatch found = loader.next();
        ASSERT_EQ(found.micro_batches.size(), step.micro_batches.size());
        for (size_t i = 0; i < step.micro_batches.size(); ++i) {
          ASSERT_EQ(found.micro_batches[i].sets[0].pixels, step.micro_batches[i].sets[0].pixels);
          ASSERT_EQ(found.micro_batches[i].sets[1].tokens, step.micro_batches[i].sets[1].tokens);
        }
      }
    }
  }
}

TEST_F(SequencesOfImages, ArePaddedLikeOthers) {
  const ImageTextSequences sequences = texts(kOneEncoder);
  const std::vector<int64_t> step = {0, 3};
  const auto batches = pack_step(sequences, step, 0, {10, 20}, {.to = Padding::To::longest});
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].sets[1].rows(), 10);
  EXPECT_EQ(batches[0].sets[0].pixels.size(), 120u);
  EXPECT_EQ(batches[0].sets[2].rows(), 4);
}

// Each is decoded once while it is hinted at, however it is wanted.
TEST_F(SequencesOfImages, InAStoreAreThoseOfTheirFiles) {
  const auto images = store(kOneEncoder, 2, 5 * 48);
  std::vector<int64_t> all(kImages);
  for (int i = 0; i < kImages; ++i) all[static_cast<size_t>(i)] = i;
  for (int round = 0; round < 3; ++round) {
    images->prefetch(all);
    std::atomic<bool> same = true;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t, &runtime = Runtime::current()] {
        const RuntimeScope scope(runtime);
        for (int i = 0; i < kImages; ++i) {
          const int image = (i * (t + 1)) % kImages;
          if (images->get(image)->front() != test::plain_image(4, 4, static_cast<uint8_t>(image))) same = false;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(same);
  }
  EXPECT_EQ(images->bytes_of_image(), 48);
  EXPECT_HAS(images->cache_note(), "5 of 20 images (25 %) stay in memory");
  EXPECT_HAS(store(kOneEncoder, 0, 1 << 20)->cache_note(), "all 20 images stay in memory");
}

TEST_F(SequencesOfImages, ThatBreakLaterAreRefusedWhereTheyAreWanted) {
  folder.write("imgs/3.ppm", "P6 9 9 255 short");
  for (const int threads : {0, 2}) {
    const auto images = store(kOneEncoder, threads);
    images->prefetch(std::vector<int64_t>{2, 3, 4});
    EXPECT_EQ(images->get(2)->size(), 1u);
    EXPECT_HAS(user_error_of([&] { images->get(3); }), "imgs/3.ppm: the image cannot be read");
    EXPECT_EQ(images->get(4)->size(), 1u);
  }
  Loader loader(
      std::make_shared<const ImageTextSequences>(with_texts.examples, store(kOneEncoder, 1), kOneEncoder, frame, 8),
      {.sequences_per_step = 20, .micro_batch_rows = {200, 200}});
  EXPECT_HAS(user_error_of([&] { loader.next(); }), "imgs/3.ppm");
}

TEST_F(SequencesOfImages, LeaveOutBrokenOnes) {
  folder.write("imgs/3.ppm", "P6 9 9 255 short");
  const ImageCheck check = check_images(with_texts.image_paths(), BrokenImages::skip, folder / "cache");
  const ImageRows left = without_images(with_texts, check.broken);
  EXPECT_EQ(left.examples.count(), kImages - 1);
  EXPECT_EQ(left.image_path(3), folder / "imgs/4.ppm");
  EXPECT_EQ(std::ssize(left.image_paths()), kImages) << "of all rows of the data";
}

// Hints that nobody follows up do not stop later ones.
TEST_F(SequencesOfImages, AreReadAheadAgainAfterHintsInVain) {
  std::vector<std::string> many;
  for (int i = 0; i < 400; ++i) many.push_back(folder / "imgs/" + std::to_string(i % kImages) + ".ppm");
  const ImageStore images(many, kOneEncoder.images, {.threads = 2});
  std::vector<int64_t> in_vain(200);
  for (int i = 0; i < 200; ++i) in_vain[static_cast<size_t>(i)] = i;
  images.prefetch(in_vain);
  for (int64_t i = 200; i < 400; ++i) {
    images.prefetch(std::vector<int64_t>{i});
    EXPECT_EQ(images.get(i)->front(), test::plain_image(4, 4, static_cast<uint8_t>(i % kImages)));
  }
}

}  // namespace
}  // namespace brisk
