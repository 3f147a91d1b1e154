#include "infer/forward/batch_buffer.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <vector>

namespace brisk {
namespace {

// The CPU, taken for a GPU: what a GPU would get can be read.
class SupposedGpu final : public Device {
 public:
  const char* name() const override { return "supposed GPU"; }
  bool is_cuda() const override { return true; }
  void* allocate(int64_t bytes) override { return cpu_device().allocate(bytes); }
  void release(void* data, int64_t bytes) override { cpu_device().release(data, bytes); }
  void copy_in(void* device, const void* host, int64_t bytes) override { cpu_device().copy_in(device, host, bytes); }
  void copy_out(void* host, const void* device, int64_t bytes) override { cpu_device().copy_out(host, device, bytes); }
};

// One whose copies come when the test says so: it is busy until then.
class BusyGpu final : public Device {
 public:
  const char* name() const override { return "busy GPU"; }
  bool is_cuda() const override { return true; }
  void* allocate(int64_t bytes) override { return cpu_device().allocate(bytes); }
  void release(void* data, int64_t bytes) override { cpu_device().release(data, bytes); }
  void copy_in(void*, const void*, int64_t) override { FAIL() << "a batch is sent, and nobody waits for it"; }
  void copy_out(void* host, const void* device, int64_t bytes) override { cpu_device().copy_out(host, device, bytes); }
  std::unique_ptr<DeviceInlet> inlet(int64_t) override { return std::make_unique<Inlet>(on_their_way_); }
  void let_one_in() {
    const auto [to, from, bytes] = on_their_way_.front();
    on_their_way_.pop_front();
    cpu_device().copy_in(to, from, bytes);
  }

 private:
  struct Sent {
    void* to;
    const void* from;
    int64_t bytes;
  };
  class Inlet final : public DeviceInlet {
   public:
    explicit Inlet(std::deque<Sent>& sent) : sent_(sent) {}
    void send(void* to, const void* staging, int64_t bytes) override { sent_.push_back({to, staging, bytes}); }

   private:
    std::deque<Sent>& sent_;
  };
  std::deque<Sent> on_their_way_;
};

// Sequences of the given lengths, whose tokens are 1, 2, ...; the first row of each is picked.
MicroBatch batch_of(const std::vector<int32_t>& lengths) {
  MicroBatch batch;
  MicroBatch::Set& picked = batch.derived_set(1, 0);
  MicroBatch::Set& rows = batch.sets[0];
  for (const int32_t length : lengths) {
    const auto sequence = static_cast<int32_t>(rows.sequences());
    picked.source.push_back(rows.starts.back());
    picked.targets.push_back(1);
    picked.position.push_back(0);
    picked.sequence.push_back(sequence);
    picked.end_sequence(picked.source.size());
    for (int32_t p = 0; p < length; ++p) {
      rows.tokens.push_back(static_cast<int32_t>(rows.tokens.size()) + 1);
      rows.targets.push_back(5);
      rows.position.push_back(p);
      rows.sequence.push_back(sequence);
    }
    rows.end_sequence(rows.tokens.size());
  }
  return batch;
}

// Of patches of an image come bytes, and rows that are derived from none of them in particular.
TEST(BatchBuffer, TakesPixelsAndFixedRows) {
  MicroBatch batch = batch_of({3, 3});
  batch.sets[0].pixels.resize(6 * 5);
  for (size_t i = 0; i < batch.sets[0].pixels.size(); ++i) batch.sets[0].pixels[i] = static_cast<uint8_t>(9 * i);
  for (const int32_t sequence : {0, 1}) batch.derived_set(2, 0).add_fixed_rows(4, sequence);
  Tape tape({.rows = {{9, 3, 3}, {3, 3, 1}, {12, 3, 4}}});
  tape.matrices(0).pixels = 5;
  tape.matrices(0).inputs = 2;
  batch.sets[0].inputs.resize(6 * 2 * sizeof(float));
  BatchBuffer buffer(cpu_device(), tape);
  std::vector<DeviceBatch::Set> sets;
  buffer.load(batch, sets);
  EXPECT_EQ(std::vector<uint8_t>(sets[0].pixels, sets[0].pixels + 30), batch.sets[0].pixels);
  EXPECT_EQ(sets[1].pixels, nullptr);
  EXPECT_EQ(sets[2].rows.rows, 8);
  EXPECT_EQ(sets[2].rows.longest, 4);
  EXPECT_EQ(sets[2].source, nullptr);
  EXPECT_EQ(std::vector<int32_t>(sets[2].tokens, sets[2].tokens + 8), (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(sets[2].rows.sequence[5], 1);
  batch.clear();
  EXPECT_TRUE(batch.sets[0].pixels.empty());
}

TEST(BatchBuffer, RoundsSizesUpOnAGpuWithRowsOfNoSequence) {
  SupposedGpu gpu;
  BatchBuffer buffer(gpu, {{1000, 100, 200}, {100, 100, 1}});
  std::vector<DeviceBatch::Set> sets;
  buffer.queue(batch_of({90, 3, 77, 10, 5}), 0, sets);
  ASSERT_EQ(sets.size(), 2u);
  const DeviceBatch::Set& rows = sets[0];
  EXPECT_EQ(rows.rows.rows, 192);  // of 185: in eights
  EXPECT_EQ(rows.rows.sequences, 8);
  EXPECT_EQ(rows.rows.longest, 128);
  EXPECT_EQ(rows.tokens[184], 185);
  for (int64_t r = 185; r < 192; ++r) {
    EXPECT_EQ(rows.tokens[r], 0);
    EXPECT_EQ(rows.targets[r], -1);
    EXPECT_EQ(rows.rows.position[r], 0);
  }
  EXPECT_EQ(rows.rows.starts[5], 185);
  for (int64_t s = 6; s <= 8; ++s) EXPECT_EQ(rows.rows.starts[s], 185);  // sequences of no rows
  const DeviceBatch::Set& picked = sets[1];
  EXPECT_EQ(picked.rows.rows, 8);
  EXPECT_EQ(picked.rows.sequences, 8);
  EXPECT_EQ(picked.source[4], 180);
  for (int64_t r = 5; r < 8; ++r) EXPECT_EQ(picked.targets[r], -1);
  EXPECT_EQ(picked.rows.starts[8], 5);
}

TEST(BatchBuffer, ABatchIsPutTogetherWhileTheOneBeforeIsOnItsWay) {
  BusyGpu gpu;
  BatchBuffer buffer(gpu, {{64, 8, 16}});
  std::vector<DeviceBatch::Set> first, second;
  buffer.queue(batch_of({3, 4}), 0, first);
  MicroBatch other = batch_of({5, 4});
  for (int32_t& token : other.sets[0].tokens) token += 100;
  buffer.queue(other, 1, second);
  EXPECT_EQ(first[0].tokens, second[0].tokens) << "a recorded graph reads one place";
  gpu.let_one_in();
  EXPECT_EQ(first[0].tokens[6], 7);
  EXPECT_EQ(first[0].rows.starts[2], 7);
  gpu.let_one_in();
  EXPECT_EQ(second[0].tokens[6], 107);
  EXPECT_EQ(second[0].rows.starts[2], 9);
}

TEST(BatchBuffer, RoundsToAtMostItsCapacity) {
  SupposedGpu gpu;
  BatchBuffer buffer(gpu, {{187, 5, 90}});
  std::vector<DeviceBatch::Set> sets;
  buffer.queue(batch_of({90, 3, 77, 10, 5}), 3, sets);
  EXPECT_EQ(sets[0].rows.rows, 187);
  EXPECT_EQ(sets[0].rows.sequences, 5);
  EXPECT_EQ(sets[0].rows.longest, 90);
}

TEST(BatchBuffer, ComesBackToFewSizes) {
  SupposedGpu gpu;
  BatchBuffer buffer(gpu, {{100000, 100, 20000}});
  std::vector<DeviceBatch::Set> sets;
  std::vector<int64_t> sizes;
  for (int32_t rows = 16400; rows < 16900; rows += 100) {
    buffer.queue(batch_of({rows}), 0, sets);
    sizes.push_back(sets[0].rows.rows);
  }
  EXPECT_EQ(std::set<int64_t>(sizes.begin(), sizes.end()).size(), 1u);
  EXPECT_EQ(sizes.front(), 16896);
}

// Sizes alone do not say it: 996 rows become 1024.
TEST(BatchBuffer, KnowsWhenAllSequencesHaveTheSameLength) {
  SupposedGpu gpu;
  BatchBuffer buffer(gpu, {{1024, 8, 128}});
  std::vector<DeviceBatch::Set> sets;
  std::vector<int32_t> lengths(8, 128);
  buffer.queue(batch_of(lengths), 0, sets);
  EXPECT_TRUE(sets[0].rows.even);
  lengths[5] = 100;
  buffer.queue(batch_of(lengths), 0, sets);
  EXPECT_EQ(sets[0].rows.rows, 8 * sets[0].rows.longest);
  EXPECT_FALSE(sets[0].rows.even);
}

TEST(BatchBuffer, LoadsABatchAsItIs) {
  BatchBuffer buffer(cpu_device(), {{1000, 100, 200}});
  std::vector<DeviceBatch::Set> sets;
  buffer.load(batch_of({3, 2}), sets);
  ASSERT_EQ(sets.size(), 1u);
  const DeviceBatch::Set& set = sets[0];
  EXPECT_EQ(set.rows.rows, 5);
  EXPECT_EQ(set.rows.sequences, 2);
  EXPECT_EQ(set.rows.longest, 3);
  EXPECT_EQ(set.tokens[4], 5);
  EXPECT_EQ(set.types, nullptr);
}

}  // namespace
}  // namespace brisk
