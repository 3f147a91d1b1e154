// Several processes write one checkpoint: the bytes of one process, all of it or nothing, and each reads its own moments.
#include "checkpoint/shared_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::contents_of;

// Several blocks of the checksum, and parameters that begin and end anywhere in them.
std::unique_ptr<ParameterStore> store_of_blocks() {
  auto store = std::make_unique<ParameterStore>();
  std::vector<Parameter*> order;
  for (const auto& [name, rows, cols] : {std::tuple("embedding.weight", 1200, 301), std::tuple("norm.gain", 1, 301),
                                         std::tuple("blocks.0.weight", 301, 907), std::tuple("head.bias", 1, 5)}) {
    ParameterSpec spec;
    spec.name = name;
    spec.rows = rows;
    spec.cols = cols;
    order.insert(order.begin(), store->add(spec));  // in memory the other way round
  }
  store->allocate(guarded_device(), order, DType::f32, ParameterStore::Purpose::training);
  return store;
}

void fill(const ParameterStore& store) {
  std::vector<float> values(static_cast<size_t>(store.flat_count()));
  float first = 1;
  for (const Tensor& flat : {store.flat_master(), store.flat_first_moment(), store.flat_second_moment()}) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
    store.device().copy_in(flat.data, values.data(), store.flat_count() * 4);
    first += 0.25f;
  }
}

std::vector<float> values_of(const ParameterStore& store, const Tensor& flat) {
  std::vector<float> values(static_cast<size_t>(store.flat_count()));
  store.device().copy_out(values.data(), flat.data, store.flat_count() * 4);
  return values;
}

class SharedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    fill(*store_);
    state_.step = 7;
  }

  // Of three processes, the last of which has little, and one that has nothing.
  std::vector<FlatRange> ranges() const {
    const int64_t count = store_->flat_count();
    return {{0, count / 2 / 16 * 16}, {count / 2 / 16 * 16, count - 32}, {count - 32, count}, {count, count}};
  }

  std::vector<SavedShare> write_shares(const std::string& run, bool from_copies) const {
    std::vector<SavedShare> shares;
    for (const FlatRange& range : ranges()) {
      if (from_copies) {
        CheckpointCopy copy(*store_, range);
        copy.take(*store_);
        shares.push_back(write_share(run, copy.tensors(), state_.step));
      } else {
        shares.push_back(write_share(run, tensors_of(*store_, range), state_.step));
      }
      shares.back() = saved_share_from_text(shares.back().text());
    }
    return shares;
  }

  static std::vector<std::string> names_in_folder(const std::string& run) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints"))
      names.push_back(entry.path().filename().string());
    return names;
  }

  const test::ScratchFolder folder_;
  Runtime runtime_{{.threads = 1}};
  const RuntimeScope scope_{runtime_};
  std::unique_ptr<ParameterStore> store_ = store_of_blocks();
  CheckpointState state_;
};

TEST_F(SharedCheckpoint, HasTheBytesOfOneThatOneProcessWrites) {
  const std::string alone = folder_ / "alone";
  ASSERT_EQ(save_checkpoint(alone, *store_, state_).problem, "");
  for (const bool from_copies : {false, true}) {
    const std::string run = folder_ / (from_copies ? "copies" : "store");
    const CheckpointTensors tensors = tensors_of(*store_, ranges()[0]);
    ASSERT_EQ(begin_shared_checkpoint(run, tensors, state_.step), "");
    EXPECT_TRUE(list_checkpoints(run).empty());
    const std::vector<SavedShare> shares = write_shares(run, from_copies);
    EXPECT_TRUE(list_checkpoints(run).empty());
    const SaveResult saved = end_shared_checkpoint(run, tensors, state_, shares);
    ASSERT_EQ(saved.problem, "");
    int64_t bytes = 0;
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors", "/state.json"}) {
      const std::string contents = contents_of(saved.path + file);
      EXPECT_TRUE(contents == contents_of(*latest_checkpoint(alone) + file)) << file;
      bytes += std::ssize(contents);
    }
    EXPECT_EQ(saved.bytes, bytes);
    EXPECT_EQ(names_in_folder(run), std::vector<std::string>{"step-00000007"});
  }
}

TEST_F(SharedCheckpoint, IsNotSavedWhereOneShareWasNot) {
  const std::string run = folder_ / "run";
  const CheckpointTensors tensors = tensors_of(*store_, ranges()[0]);
  CheckpointState earlier;
  earlier.step = 3;
  ASSERT_EQ(save_checkpoint(run, *store_, earlier).problem, "");
  ASSERT_EQ(begin_shared_checkpoint(run, tensors, state_.step), "");
  std::vector<SavedShare> shares = write_shares(run, false);
  shares[1].problem = "the disk is full";
  EXPECT_EQ(end_shared_checkpoint(run, tensors, state_, shares).problem,
            "the checkpoint of step 7 was not saved: rank 1: the disk is full; the last one, of step 3, is kept");
  EXPECT_EQ(names_in_folder(run), std::vector<std::string>{"step-00000003"});
}

// As on a file system that writes back whole pages: of one that two machines write, what came last is all there is.
TEST_F(SharedCheckpoint, IsNotSavedWhereTheFileSystemLostWhatOneWrote) {
  const std::string run = folder_ / "run", partial = run + "/checkpoints/.step-00000007.partial";
  const CheckpointTensors tensors = tensors_of(*store_, ranges()[0]);
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    ASSERT_EQ(begin_shared_checkpoint(run, tensors, state_.step), "");
    const std::vector<SavedShare> shares = write_shares(run, false);
    std::string bytes = contents_of(partial + file);
    const auto& written = file[1] == 'm' ? shares[1].model : shares[1].optimizer;
    const auto lost = static_cast<size_t>(written.front().begin);  // within a block that the first one wrote, too
    bytes.replace(lost, 16, 16, '\0');
    test::put_contents(partial + file, bytes);
    const std::string problem = end_shared_checkpoint(run, tensors, state_, shares).problem;
    EXPECT_NE(problem.find("are not what rank 1 wrote there"), std::string::npos) << problem;
    EXPECT_TRUE(names_in_folder(run).empty());
  }
}

TEST_F(SharedCheckpoint, SaysWhereAProcessDoesNotSeeTheFiles) {
  const std::string run = folder_ / "run";
  EXPECT_NE(write_share(run, tensors_of(*store_, ranges()[0]), 7).problem, "");
  ASSERT_EQ(begin_shared_checkpoint(run, tensors_of(*store_), 7), "");
  std::filesystem::resize_file(run + "/checkpoints/.step-00000007.partial/model.safetensors", 100);
  const std::string problem = write_share(run, tensors_of(*store_, ranges()[0]), 7).problem;
  EXPECT_NE(problem.find("it has 100 bytes, expected"), std::string::npos) << problem;
  EXPECT_NE(problem.find("do all machines see the same run directory?"), std::string::npos) << problem;
}

TEST_F(SharedCheckpoint, IsReadByEachProcessForItsOwnMoments) {
  ASSERT_EQ(save_checkpoint(folder_ / "run", *store_, state_).problem, "");
  const FlatRange own = ranges()[1];
  const std::unique_ptr<ParameterStore> store = store_of_blocks();
  load_checkpoint(*latest_checkpoint(folder_ / "run"), *store, own, false);
  for (const auto& parameter : store->all()) {
    const auto compare = [&](const Tensor& read, const Tensor& saved, bool all) {
      const std::vector<float> found = values_of(*store, read), expected = values_of(*store_, saved);
      for (int64_t i = parameter->offset; i < parameter->offset + parameter->count(); ++i) {
        const bool is_own = all || (i >= own.begin && i < own.end);
        ASSERT_EQ(found[static_cast<size_t>(i)], is_own ? expected[static_cast<size_t>(i)] : 0) << parameter->spec.name;
      }
    };
    compare(store->flat_master(), store_->flat_master(), true);
    compare(store->flat_first_moment(), store_->flat_first_moment(), false);
    compare(store->flat_second_moment(), store_->flat_second_moment(), false);
  }
}

// A bit that a disk changed is found by the process that reads the whole file.
TEST_F(SharedCheckpoint, IsCheckedByOneProcessForAll) {
  ASSERT_EQ(save_checkpoint(folder_ / "run", *store_, state_).problem, "");
  const std::string place = *latest_checkpoint(folder_ / "run"), path = place + "/optimizer.safetensors";
  std::string bytes = contents_of(path);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  test::put_contents(path, bytes);
  const std::unique_ptr<ParameterStore> store = store_of_blocks();
  EXPECT_NE(test::message_of<UserError>([&] {
              load_checkpoint(place, *store, ranges()[0], true);
            }).find("it is not what was"),
            std::string::npos);
  EXPECT_EQ(load_checkpoint(place, *store, ranges()[1], false).step, 7);
}

}  // namespace
}  // namespace brisk
