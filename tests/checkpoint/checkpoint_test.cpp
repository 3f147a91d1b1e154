#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "checkpoint/checksum.h"
#include "checkpoint/run_directory.h"
#include "hub/formats/safetensors.h"
#include "support/broken_system.h"
#include "support/scratch_folder.h"
#include "train/record/metrics_log.h"

namespace brisk {
namespace {

using test::contents_of;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

using Purpose = ParameterStore::Purpose;

// Three parameters of odd sizes, so that alignment in the flat arrays shows. Device memory cannot be read directly.
std::unique_ptr<ParameterStore> make_store(Purpose purpose = Purpose::training, int64_t width = 3) {
  auto store = std::make_unique<ParameterStore>();
  const auto add = [&](const char* name, int64_t rows, int64_t cols) {
    ParameterSpec spec;
    spec.name = name;
    spec.rows = rows;
    spec.cols = cols;
    return store->add(spec);
  };
  add("embedding.weight", 5, width);
  Parameter* norm = add("norm.gain", 1, width);
  add("head.weight", 7, width);
  store->allocate(guarded_device(), {norm}, DType::f32, purpose);
  return store;
}

void fill(const ParameterStore& store, const Tensor& flat, float first) {
  std::vector<float> values(static_cast<size_t>(store.flat_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  store.device().copy_in(flat.data, values.data(), store.flat_count() * 4);
}

void fill_all(const ParameterStore& store, float first) {
  fill(store, store.flat_master(), first);
  fill(store, store.flat_first_moment(), first + 0.25f);
  fill(store, store.flat_second_moment(), first + 0.5f);
}

// The values of each parameter, the padding between them left out.
std::vector<float> flat_values(const ParameterStore& store, const Tensor& flat) {
  std::vector<float> all(static_cast<size_t>(store.flat_count())), values;
  store.device().copy_out(all.data(), flat.data, store.flat_count() * 4);
  for (const auto& parameter : store.all()) {
    const auto begin = all.begin() + parameter->offset;
    values.insert(values.end(), begin, begin + parameter->count());
  }
  return values;
}

CheckpointState state_of(int64_t step) {
  CheckpointState state;
  state.step = step;
  state.cursor = {.epoch = step / 3, .step = step % 3};
  state.tokens_seen = 1000 * step;
  state.seed = 9223372036854775807ull;
  return state;
}

class Checkpoint : public ::testing::Test {
 protected:
  std::string path_of(int64_t step) const { return fmt::format("{}/checkpoints/step-{:08}", run_, step); }
  std::string saved(int64_t step, float first = 1.0f) {
    const auto store = make_store();
    fill_all(*store, first);
    const SaveResult result = save_checkpoint(run_, *store, state_of(step));
    EXPECT_EQ(result.problem, "");
    EXPECT_EQ(result.path, path_of(step));
    return result.path;
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const CheckpointPath& place : list_checkpoints(run_)) steps.push_back(place.step);
    return steps;
  }
  int64_t names_in_folder() const {
    const auto files = std::filesystem::directory_iterator(run_ + "/checkpoints");
    return std::distance(begin(files), end(files));
  }
  std::string complaint_of_loading(const std::string& path) {
    const auto store = make_store();
    return message_of<UserError>([&] { load_checkpoint(path, *store); });
  }

  ScratchFolder folder_;
  std::string run_ = folder_.path();
};

// The state without its checksum, as an earlier brisk wrote it, or as somebody writes it who changes it.
nlohmann::ordered_json state_without_checksum(const std::string& path) {
  auto state = nlohmann::ordered_json::parse(contents_of(path + "/state.json"));
  EXPECT_EQ(state.erase("checksum"), 1u);
  return state;
}

TEST_F(Checkpoint, WhatIsSavedIsLoadedToTheBit) {
  const auto store = make_store();
  fill_all(*store, 0.1f);
  CheckpointState state = state_of(123);
  state.best_metrics = {standard_metric("loss", 1.0 / 3.0), standard_metric("bleu", 27.5)};
  state.best_step = 100;
  state.evaluations_without_improvement = 2;
  state.tuned_settings_json = R"({"precision":"bf16","micro_batch_tokens":2048,"times":[0.1,2.5e-09]})";
  state.loss_sums = {.loss = std::nextafter(0.1, 1.0), .correct = -0.0, .targets = 5e-324, .weights = 3};
  state.epoch_sums = {.loss = std::nextafter(0.2, 1.0), .correct = 4, .targets = 5, .weights = 6};
  state.epoch_steps = 7;
  state.epoch_skipped = 2;
  state.recent_loss = std::nextafter(0.3, 1.0);
  state.recent_weights = 8;
  state.job_fingerprint = "f00d";
  state.evaluation_due = true;
  const SaveResult result = save_checkpoint(run_, *store, state);
  ASSERT_EQ(result.problem, "");
  EXPECT_EQ(result.path, path_of(123));
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(result.path)) bytes += file_size(file.path().string());
  EXPECT_EQ(result.bytes, bytes);

  const auto other = make_store();
  const CheckpointState loaded = load_checkpoint(result.path, *other);
  EXPECT_EQ(flat_values(*other, other->flat_master()), flat_values(*store, store->flat_master()));
  EXPECT_EQ(flat_values(*other, other->flat_first_moment()), flat_values(*store, store->flat_first_moment()));
  EXPECT_EQ(flat_values(*other, other->flat_second_moment()), flat_values(*store, store->flat_second_moment()));
  EXPECT_EQ(loaded.step, 123);
  EXPECT_EQ(loaded.cursor, state.cursor);
  EXPECT_EQ(loaded.tokens_seen, 123000);
  EXPECT_EQ(loaded.best_metrics.value("loss"), 1.0 / 3.0);
  EXPECT_EQ(loaded.best_metrics.value("bleu"), 27.5);
  EXPECT_EQ(loaded.best_step, 100);
  EXPECT_EQ(loaded.evaluations_without_improvement, 2);
  EXPECT_EQ(loaded.seed, 9223372036854775807ull);
  EXPECT_EQ(loaded.tuned_settings_json, state.tuned_settings_json);
  EXPECT_EQ(loaded.loss_sums, state.loss_sums);
  EXPECT_TRUE(std::signbit(loaded.loss_sums.correct));
  EXPECT_EQ(loaded.epoch_sums, state.epoch_sums);
  EXPECT_EQ(loaded.epoch_steps, 7);
  EXPECT_EQ(loaded.epoch_skipped, 2);
  EXPECT_EQ(loaded.recent_loss, state.recent_loss);
  EXPECT_EQ(loaded.recent_weights, 8);
  EXPECT_EQ(loaded.job_fingerprint, "f00d");
  EXPECT_TRUE(loaded.evaluation_due);
}

TEST_F(Checkpoint, TheBestMetricsOfAnEarlierBriskAreRead) {
  const std::string path = saved(1);
  const std::string whole = state_without_checksum(path).dump(2), now = "\"best_metrics\": {}";
  const auto best_with = [&](const std::string& before) {
    std::string text = whole;
    put_contents(path + "/state.json", text.replace(text.find(now), now.size(), before));
    return read_checkpoint_state(path).best_metrics;
  };
  const Metrics both = best_with(R"("best_validation_loss": "0.25", "best_validation_accuracy": "0.75")");
  EXPECT_EQ(both.value("loss"), 0.25);
  EXPECT_EQ(both.value("accuracy"), 0.75);
  EXPECT_EQ(best_with(R"("best_validation_loss": "0.25")").value("loss"), 0.25);
  EXPECT_TRUE(best_with(R"("best_validation_loss": "inf", "best_validation_accuracy": "-1")").empty());
}

TEST_F(Checkpoint, TheLossSumsOfAnEarlierBriskAreRead) {
  const std::string path = saved(1);
  auto state = state_without_checksum(path);
  const auto sums_with = [&](const nlohmann::json& before) {
    state["accumulators"] = before;
    put_contents(path + "/state.json", state.dump());
    return read_checkpoint_state(path).loss_sums;
  };
  EXPECT_EQ(sums_with(nlohmann::json::object()), LossSums());
  EXPECT_EQ(sums_with({{"loss_sum", "1.5"}, {"correct", "2"}, {"tokens", "8"}}),
            (LossSums{.loss = 1.5, .correct = 2, .targets = 8, .weights = 8}));
  EXPECT_EQ(sums_with({{"loss_sum", "1.5"}, {"correct", "2"}, {"tokens", "8"}, {"weights", "9"}}),
            (LossSums{.loss = 1.5, .correct = 2, .targets = 8, .weights = 9}));
}

TEST_F(Checkpoint, BeforeTheFirstEvaluationThereIsNoBest) {
  const CheckpointState loaded = read_checkpoint_state(saved(1));
  EXPECT_TRUE(loaded.best_metrics.empty());
  EXPECT_EQ(loaded.best_step, -1);
}

TEST_F(Checkpoint, TheModelAloneLoadsForInference) {
  const std::string path = saved(5, 3.0f);
  const auto trained = make_store();
  load_checkpoint(path, *trained);
  for (const std::string& place : {path, path + "/model.safetensors"}) {
    const auto store = make_store(Purpose::inference);
    load_model(place, *store);
    EXPECT_EQ(flat_values(*store, store->flat_master()), flat_values(*trained, trained->flat_master()));
  }
}

TEST_F(Checkpoint, ACheckpointOfTheSameStepIsReplaced) {
  saved(5, 1.0f);
  saved(5, 2.0f);
  EXPECT_EQ(names_in_folder(), 1);
  const auto store = make_store();
  load_checkpoint(path_of(5), *store);
  EXPECT_EQ(flat_values(*store, store->flat_master())[15], 2.0f) << "norm.gain comes first in memory";
}

TEST_F(Checkpoint, TheLastOnesAndTheBestAreKept) {
  for (int64_t step = 1; step <= 6; ++step) saved(step);
  EXPECT_EQ(prune_checkpoints(run_, 0, 2), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(prune_checkpoints(run_, 2, 3), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{3, 5, 6}));
  EXPECT_EQ(prune_checkpoints(run_, 2, 6), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(prune_checkpoints(run_, 1, -1), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{6}));
  EXPECT_EQ(names_in_folder(), 1);
}

TEST_F(Checkpoint, WhatCouldNotBeRemovedIsRemovedTheNextTime) {
  saved(5);
  const std::string folder = run_ + "/checkpoints/";
  std::filesystem::copy(path_of(5), folder + ".step-00000004.deleted");
  make_directories(folder + ".step-notes.deleted");
  EXPECT_EQ(prune_checkpoints(run_, 2, -1), "");
  EXPECT_FALSE(file_exists(folder + ".step-00000004.deleted"));
  EXPECT_TRUE(file_exists(folder + ".step-notes.deleted"));
  EXPECT_EQ(steps(), (std::vector<int64_t>{5}));
}

TEST_F(Checkpoint, TheLatestAndTheBestAreFound) {
  EXPECT_EQ(latest_checkpoint(run_), std::nullopt);
  EXPECT_EQ(best_checkpoint(run_), std::nullopt);
  saved(90);
  const auto store = make_store();
  CheckpointState state = state_of(100'000'000);  // nine digits sort after eight
  state.best_step = 90;
  save_checkpoint(run_, *store, state);
  EXPECT_EQ(latest_checkpoint(run_), path_of(100'000'000));
  EXPECT_EQ(best_checkpoint(run_), path_of(90));
  remove_directory_tree(path_of(90));
  EXPECT_EQ(best_checkpoint(run_), path_of(100'000'000));
}

TEST_F(Checkpoint, HalfWrittenAndHalfDeletedOnesDoNotCountAndAreRemoved) {
  saved(5);
  const std::string folder = run_ + "/checkpoints/";
  std::filesystem::copy(path_of(5), folder + ".step-00000006.partial");
  std::filesystem::copy(path_of(5), folder + ".step-00000004.deleted");
  put_contents(folder + "step-00000009", "a file");
  make_directories(folder + "step-7");
  EXPECT_EQ(latest_checkpoint(run_), path_of(5));
  remove_stale_checkpoints(run_);
  EXPECT_FALSE(file_exists(folder + ".step-00000006.partial"));
  EXPECT_FALSE(file_exists(folder + ".step-00000004.deleted"));
  EXPECT_EQ(complaint_of_loading(path_of(5)), "");
}

TEST_F(Checkpoint, WhatTheRunDidNotMakeIsNotRemoved) {
  saved(5);
  const std::string folder = run_ + "/checkpoints/";
  for (const char* name : {".step-notes", ".step-00000006.mine", ".step-6.partial", ".stepladder"}) {
    make_directories(folder + name);
  }
  remove_stale_checkpoints(run_);
  EXPECT_EQ(names_in_folder(), 5);
  // A link that has the name of a checkpoint: the link goes, what it leads to stays.
  make_directories(run_ + "/elsewhere");
  put_contents(run_ + "/elsewhere/precious", "precious");
  std::filesystem::create_directory_symlink(run_ + "/elsewhere", folder + ".step-00000007.deleted");
  std::filesystem::create_directory_symlink(run_ + "/elsewhere", folder + "step-00000004");
  remove_stale_checkpoints(run_);
  EXPECT_EQ(prune_checkpoints(run_, 1, -1), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{5}));
  EXPECT_EQ(contents_of(run_ + "/elsewhere/precious"), "precious");
}

TEST_F(Checkpoint, AFolderOfCheckpointsThatIsALinkIsNotWrittenTo) {
  make_directories(run_ + "/elsewhere/.step-00000005.partial");
  std::filesystem::create_directory_symlink("elsewhere", run_ + "/checkpoints");
  EXPECT_TRUE(has(message_of<UserError>([&] { remove_stale_checkpoints(run_); }), "it is a symbolic link"));
  EXPECT_TRUE(has(save_checkpoint(run_, *make_store(), state_of(5)).problem, "it is a symbolic link"));
  EXPECT_TRUE(is_directory(run_ + "/elsewhere/.step-00000005.partial"));
}

TEST_F(Checkpoint, OneThatWasBeingReplacedComesBackUnlessItsSuccessorIsThere) {
  const std::string moved = run_ + "/checkpoints/.step-00000005.replaced";
  rename_file(saved(5), moved);
  remove_stale_checkpoints(run_);
  EXPECT_EQ(complaint_of_loading(path_of(5)), "");
  std::filesystem::copy(path_of(5), moved);
  remove_stale_checkpoints(run_);
  EXPECT_EQ(names_in_folder(), 1);
}

TEST_F(Checkpoint, ALeftoverOfTheSameNameDoesNotHinderASave) {
  make_directories(run_ + "/checkpoints/.step-00000005.partial/model.safetensors");
  make_directories(run_ + "/checkpoints/.step-00000005.deleted/model.safetensors");
  saved(5);
  saved(6);
  EXPECT_EQ(prune_checkpoints(run_, 1, -1), "");
  EXPECT_EQ(steps(), (std::vector<int64_t>{6}));
}

TEST_F(Checkpoint, EveryTruncationOfEveryFileIsRefusedAndNamesOneThatIsWhole) {
  saved(4);
  const std::string path = saved(5);
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors", "/state.json"}) {
    const std::string whole = contents_of(path + file);
    // state.json without its last newline is still whole.
    const size_t shorter = std::string(file) == "/state.json" ? whole.size() - 1 : whole.size();
    for (size_t length = 0; length < shorter; ++length) {
      put_contents(path + file, whole.substr(0, length));
      const std::string message = complaint_of_loading(path);
      ASSERT_TRUE(has(message, path + file)) << file << " cut to " << length << ": " << message;
      ASSERT_TRUE(has(message, path_of(4) + " is intact")) << message;
    }
    remove_file(path + file);
    EXPECT_TRUE(has(complaint_of_loading(path), path + file));
    put_contents(path + file, whole);
  }
  EXPECT_EQ(complaint_of_loading(path), "");
}

TEST_F(Checkpoint, WhereNoneIsWholeTheMessageSaysSo) {
  put_contents(saved(4) + "/state.json", "{}");
  put_contents(saved(5) + "/state.json", "");
  EXPECT_TRUE(has(complaint_of_loading(path_of(5)), "no other checkpoint"));
  EXPECT_TRUE(has(complaint_of_loading(path_of(6)), "no such checkpoint"));
}

TEST_F(Checkpoint, NoChangedByteOfTheStateIsMoreThanAUserError) {
  const std::string path = saved(5);
  const std::string whole = contents_of(path + "/state.json");
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned char change : {0x01, 0x04, 0x10, 0x80}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ change);
      put_contents(path + "/state.json", damaged);
      const bool is_refused = message_of<UserError>([&] { read_checkpoint_state(path); }) != "";
      // The key of the checksum itself: without it the file is one of an earlier brisk.
      const bool is_in_key = i + 48 > whole.size() && i + 24 < whole.size();
      EXPECT_TRUE(is_refused || is_in_key) << "byte " << i << ": " << damaged;
    }
  }
}

TEST_F(Checkpoint, AStateThatNoRunCouldBeInIsRefusedByItsKey) {
  const std::string path = saved(5);
  const nlohmann::ordered_json good = state_without_checksum(path);
  const auto complaint_with = [&](const std::string& pointer, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json state = good;
    state[nlohmann::ordered_json::json_pointer(pointer)] = value;
    put_contents(path + "/state.json", state.dump(2));
    return message_of<UserError>([&] { read_checkpoint_state(path); });
  };
  EXPECT_EQ(complaint_with("/step", 5), "");
  EXPECT_TRUE(has(complaint_with("/step", -1), "step is -1, expected an integer from 0"));
  EXPECT_TRUE(has(complaint_with("/cursor/step", 1000000000000000), "step is 1000000000000000, expected an integer"));
  EXPECT_TRUE(has(complaint_with("/cursor/epoch", 6), "epoch is 6, expected an integer from 0 to 5"));
  EXPECT_TRUE(has(complaint_with("/seed", 18446744073709551615u), "seed is 18446744073709551615, expected"));
  EXPECT_TRUE(has(complaint_with("/tokens_seen", -7), "tokens_seen is -7"));
  EXPECT_TRUE(has(complaint_with("/best_step", 6), "best_step is 6, expected an integer from -1 to 5"));
  EXPECT_TRUE(has(complaint_with("/evaluations_without_improvement", -1), "evaluations_without_improvement is -1"));
  EXPECT_TRUE(
      has(complaint_with("/clock/elapsed_seconds", "nan"), "elapsed_seconds is \"nan\", expected a number from 0"));
  EXPECT_TRUE(has(complaint_with("/clock/elapsed_seconds", "-1"), "elapsed_seconds is"));
  EXPECT_TRUE(has(complaint_with("/clock/progress", "1.5"), "progress is \"1.5\", expected a number from 0 to 1"));
  EXPECT_TRUE(has(complaint_with("/guard/rate_factor", "nan"), "rate_factor is"));
  EXPECT_TRUE(has(complaint_with("/guard/skipped", -1), "skipped is -1"));
  EXPECT_TRUE(has(complaint_with("/guard/gradient_norms", {"inf"}), "gradient_norms is \"inf\", expected finite"));
}

TEST_F(Checkpoint, AnyFlippedBitOfATensorIsFoundAndOneThatIsWholeIsNamed) {
  saved(4);
  const std::string path = saved(5);
  const auto store = make_store();
  fill_all(*store, 9.0f);
  const std::vector<float> untouched = flat_values(*store, store->flat_master());
  for (const char* name : {"/model.safetensors", "/optimizer.safetensors"}) {
    const std::string whole = contents_of(path + name);
    for (size_t i = 0; i < whole.size(); i += 7) {
      std::string damaged = whole;
      damaged[whole.size() - 1 - i] ^= static_cast<char>(1 << (i % 8));
      put_contents(path + name, damaged);
      const std::string message = message_of<UserError>([&] { load_checkpoint(path, *store); });
      ASSERT_TRUE(has(message, path + name)) << i << ": " << message;
      ASSERT_TRUE(has(message, "step-00000004")) << i << ": " << message;
    }
    put_contents(path + name, whole);
  }
  EXPECT_EQ(flat_values(*store, store->flat_master()), untouched);
  EXPECT_EQ(message_of<UserError>([&] { load_checkpoint(path, *store); }), "");
}

TEST_F(Checkpoint, AFlippedBitIsFoundWhenTheModelIsUsed) {
  const std::string path = saved(5);
  std::string damaged = contents_of(path + "/model.safetensors");
  damaged.back() ^= 1;
  put_contents(path + "/model.safetensors", damaged);
  const auto store = make_store(Purpose::inference);
  EXPECT_TRUE(has(message_of<UserError>([&] { load_model(path, *store); }), "not what was saved"));
}

TEST_F(Checkpoint, OneWithoutChecksumsIsReadAsItIs) {
  const std::string path = saved(5);
  auto state = nlohmann::json::parse(contents_of(path + "/state.json"));
  for (const char* key : {"checksum", "checksums", "guard", "clock", "run_files"}) ASSERT_EQ(state.erase(key), 1u);
  put_contents(path + "/state.json", state.dump());
  const auto store = make_store();
  EXPECT_EQ(message_of<UserError>([&] { load_checkpoint(path, *store); }), "");
}

TEST(Checksum, IsTheSameForAnyNumberOfThreadsAndAnotherForAnyLength) {
  std::vector<std::byte> bytes((size_t{3} << 20) + 77);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  const int threads = thread_pool().size();
  Runtime::current().set_threads(1);
  const uint64_t one = checksum(bytes);
  Runtime::current().set_threads(3);
  EXPECT_EQ(checksum(bytes), one);
  Runtime::current().set_threads(threads);
  EXPECT_NE(checksum(std::span(bytes).first(bytes.size() - 1)), one);
  EXPECT_NE(checksum(std::vector<std::byte>(8)), checksum(std::vector<std::byte>(16)));
  bytes[5] = std::byte{1};
  const uint64_t changed = checksum(bytes);
  std::swap(bytes[5], bytes[(size_t{1} << 20) + 6]);  // into another block
  EXPECT_NE(changed, one);
  EXPECT_NE(checksum(bytes), changed);
}

TEST(Checksum, OfPiecesIsThatOfTheWhole) {
  std::vector<std::byte> bytes((size_t{3} << 20) + 77);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  for (const size_t size : {size_t{0}, size_t{5}, size_t{1} << 20, (size_t{1} << 20) + 1, bytes.size()}) {
    const std::span<const std::byte> whole = std::span(bytes).first(size);
    for (const size_t piece : {size_t{1000}, size_t{1} << 20, (size_t{2} << 20) + 3, bytes.size()}) {
      RunningChecksum running;
      for (size_t at = 0; at < size; at += piece) running.add(whole.subspan(at, std::min(piece, size - at)));
      EXPECT_EQ(running.value(), checksum(whole)) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST_F(Checkpoint, ACopyIsWhatTheStoreHeldWhenItWasTaken) {
  const auto store = make_store();
  fill_all(*store, 0.1f);
  CheckpointCopy copy(*store);
  for (const float first : {0.1f, 0.3f}) {  // one copy serves every save
    fill_all(*store, first);
    copy.take(*store);
    fill_all(*store, 7.0f);
    const SaveResult result = save_checkpoint(run_, copy.tensors(), state_of(5));
    ASSERT_EQ(result.problem, "");
    const auto expected = make_store(), loaded = make_store();
    fill_all(*expected, first);
    load_checkpoint(result.path, *loaded);  // the checksums are those of the files
    EXPECT_EQ(flat_values(*loaded, loaded->flat_master()), flat_values(*expected, expected->flat_master()));
    EXPECT_EQ(flat_values(*loaded, loaded->flat_second_moment()),
              flat_values(*expected, expected->flat_second_moment()));
  }
}

TEST_F(Checkpoint, StateFilesThatDoNotFitAreRefusedByTheirKey) {
  const std::string path = saved(5);
  const std::string whole = state_without_checksum(path).dump(2);
  const auto complaint_with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    EXPECT_NE(text.find(from), std::string::npos);
    put_contents(path + "/state.json", text.replace(text.find(from), from.size(), to));
    return complaint_of_loading(path);
  };
  EXPECT_TRUE(has(complaint_with("\"format_version\": 1", "\"format_version\": 2"), "format_version is 2, expected 1"));
  EXPECT_TRUE(has(complaint_with("\"step\": 5,\n  \"cursor\"", "\"step\": 6,\n  \"cursor\""), "mixed"));
  EXPECT_TRUE(has(complaint_with("\"best_metrics\": {}", "\"best_metrics\": {\"loss\": \"infernal\"}"), "loss is"));
  EXPECT_TRUE(has(complaint_with("\"seed\": 9223372036854775807", "\"seed\": -1"), "seed is -1"));
}

TEST_F(Checkpoint, ACheckpointOfAnotherModelIsRefusedAndChangesNothing) {
  const std::string path = saved(5);
  const auto wider = make_store(Purpose::training, 4);
  fill_all(*wider, 9.0f);
  const std::vector<float> before = flat_values(*wider, wider->flat_master());
  const std::string message = message_of<UserError>([&] { load_checkpoint(path, *wider); });
  EXPECT_TRUE(has(message, "'embedding.weight' is F32 [5, 3], expected F32 [5, 4]")) << message;
  EXPECT_EQ(flat_values(*wider, wider->flat_master()), before);

  // Moments of the right names but damaged: the masters are not touched either.
  put_contents(path + "/optimizer.safetensors", contents_of(path + "/model.safetensors"));
  const auto store = make_store();
  fill_all(*store, 9.0f);
  const std::vector<float> untouched = flat_values(*store, store->flat_master());
  EXPECT_TRUE(has(message_of<UserError>([&] { load_checkpoint(path, *store); }), "first_moment.embedding.weight"));
  EXPECT_EQ(flat_values(*store, store->flat_master()), untouched);

  const auto larger = std::make_unique<ParameterStore>();
  ParameterSpec spec;
  spec.name = "norm.gain";
  spec.cols = 3;
  larger->add(spec);
  larger->allocate(cpu_device(), {}, DType::f32, Purpose::inference);
  EXPECT_TRUE(has(message_of<UserError>([&] { load_model(path, *larger); }), "which the model does not have"));
}

TEST_F(Checkpoint, AFullDiskKeepsThePreviousCheckpointAndTrainingGoesOn) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    test::mount_small_disk(run_, "size=48k");  // twelve pages
    saved(1);
    const auto store = make_store(Purpose::training, 200);
    const SaveResult result = save_checkpoint(run_, *store, state_of(2));
    EXPECT_FALSE(result.ok());
    EXPECT_TRUE(has(result.problem, "space") && has(result.problem, "step 1, is kept")) << result.problem;
    EXPECT_EQ(names_in_folder(), 1) << "nothing half-written is left";
    EXPECT_EQ(complaint_of_loading(path_of(1)), "");
    saved(3);  // and there is room again
  });
}

// At every size a disk can have, from none to enough, a save either succeeds or leaves no trace.
TEST_F(Checkpoint, AFileSizeLimitAtAnyPointLeavesWholeCheckpointsOnly) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    saved(1);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t unlimited = limit.rlim_cur;
    const auto store = make_store();
    int failures = 0, successes = 0;
    for (rlim_t bytes = 0; bytes < 2000; bytes += 40) {
      limit.rlim_cur = bytes;
      setrlimit(RLIMIT_FSIZE, &limit);
      const SaveResult result = save_checkpoint(run_, *store, state_of(2));
      limit.rlim_cur = unlimited;
      setrlimit(RLIMIT_FSIZE, &limit);
      (result.ok() ? successes : failures) += 1;
      EXPECT_EQ(names_in_folder(), result.ok() ? 2 : 1);
      EXPECT_EQ(result.ok(), has(result.path, "step-00000002"));
      EXPECT_EQ(complaint_of_loading(*latest_checkpoint(run_)), "");
    }
    EXPECT_GT(failures, 10);
    EXPECT_GT(successes, 5);
  });
}

TEST_F(Checkpoint, AFolderThatCannotBeWrittenIsAProblemNotAnEnd) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    saved(1);
    saved(2);
    chmod((run_ + "/checkpoints").c_str(), 0555);
    test::lose_privileges();
    const auto store = make_store();
    const SaveResult result = save_checkpoint(run_, *store, state_of(3));
    EXPECT_TRUE(has(result.problem, "ermission") && has(result.problem, "step 2, is kept")) << result.problem;
    const std::string problem = prune_checkpoints(run_, 1, -1);
    EXPECT_TRUE(has(problem, "not removed") && has(problem, "ermission")) << problem;
    EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2}));
  });
  put_contents(folder_ / "run", "a file where the run directory was");
  const auto store = make_store();
  EXPECT_FALSE(save_checkpoint(folder_ / "run", *store, state_of(2)).ok());
}

// A folder that may be written and not read cannot be opened to be flushed.
TEST_F(Checkpoint, OneWhoseFolderCannotBeFlushedIsNotThere) {
  BRISK_EXPECT_CHILD_PASSES([&] {
    saved(1, 1.0f);
    for (const std::string& path : {path_of(1), path_of(1) + "/model.safetensors", run_}) chmod(path.c_str(), 0777);
    const std::string folder = run_ + "/checkpoints";
    chmod(folder.c_str(), 0333);
    test::lose_privileges();
    const auto store = make_store();
    EXPECT_TRUE(has(save_checkpoint(run_, *store, state_of(2)).problem, "cannot open the folder"));
    EXPECT_FALSE(file_exists(path_of(2)));
    EXPECT_FALSE(file_exists(folder + "/.step-00000002.partial"));
    const std::string before = contents_of(path_of(1) + "/model.safetensors");
    EXPECT_TRUE(has(save_checkpoint(run_, *store, state_of(1)).problem, "cannot open the folder"));
    EXPECT_EQ(contents_of(path_of(1) + "/model.safetensors"), before) << "the old one has its name again";
  });
}

TEST_F(Checkpoint, DiskSpaceIsKnownBeforehand) {
  const auto store = make_store(Purpose::training, 1000);
  const SaveResult result = save_checkpoint(run_, *store, state_of(1));
  EXPECT_LE(result.bytes, checkpoint_bytes(12 * store->count()));
  EXPECT_GE(checkpoint_bytes(12'000'000), 12'000'000);
  EXPECT_LE(checkpoint_bytes(12'000'000'000), 12'010'000'000);
  const int64_t one = checkpoint_bytes(1000);
  EXPECT_EQ(checkpoints_bytes(1000, 2, 100), 4 * one);
  EXPECT_EQ(checkpoints_bytes(1000, 2, 1), one);
  EXPECT_EQ(checkpoints_bytes(1000, 0, 100), 100 * one);
}

// A trainer that only saves: every value of step n is a function of n, and each step has one line of metrics.
[[noreturn]] void train_until_killed(const std::string& path, int report) {
  const RunDirectory run = RunDirectory::open(path, RunDirectory::Mode::resume);
  const auto store = make_store();
  CheckpointState state = state_of(0);
  if (const auto latest = latest_checkpoint(path)) state = load_checkpoint(*latest, *store);
  run.cut_metrics(state.step);
  MetricsLog log(run.metrics_path());
  for (;;) {
    const int64_t step = state.step + 1;
    const int64_t best_step = step % 5 == 0 ? step : state.best_step;
    state = state_of(step);
    state.best_step = best_step;
    fill_all(*store, static_cast<float>(step));
    log.append(StepMetrics{.step = step});
    if (step % 3 != 0 && save_checkpoint(path, *store, state).ok()) {
      if (::write(report, &step, sizeof step) != sizeof step) ::_exit(1);
      prune_checkpoints(path, 2, state.best_step);
    }
  }
}

TEST_F(Checkpoint, AProcessKilledAtAnyInstantLeavesARunThatGoesOn) {
  // Kills fall anywhere in the first few saves, however fast the disk is.
  const auto begin = std::chrono::steady_clock::now();
  saved(1, 1.0f);
  const std::chrono::duration<double> save_time = std::chrono::steady_clock::now() - begin;
  std::uniform_real_distribution<double> seconds(0, 0.002 + 6 * save_time.count());
  remove_directory_tree(run_ + "/checkpoints");

  std::mt19937 random(7);
  int64_t last_step = 0;
  for (int round = 0; round < 40 || (last_step <= 10 && round < 200); ++round) {
    int report[2];
    ASSERT_EQ(::pipe(report), 0);
    const pid_t child = ::fork();
    if (child == 0) train_until_killed(run_, report[1]);
    ::close(report[1]);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds(random)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the trainer ended by itself";
    int64_t reported = last_step;
    for (int64_t step = 0; ::read(report[0], &step, sizeof step) == sizeof step;) reported = step;
    ::close(report[0]);

    const RunDirectory run = RunDirectory::open(run_, RunDirectory::Mode::resume);
    const auto latest = latest_checkpoint(run_);
    ASSERT_TRUE(latest || reported == 0);
    if (!latest) continue;
    const auto store = make_store();
    const CheckpointState state = load_checkpoint(*latest, *store);
    ASSERT_GE(state.step, reported) << "a checkpoint that was reported saved is lost";
    last_step = state.step;
    const auto expected = make_store();
    fill_all(*expected, static_cast<float>(state.step));
    ASSERT_EQ(flat_values(*store, store->flat_master()), flat_values(*expected, expected->flat_master()));
    ASSERT_EQ(flat_values(*store, store->flat_second_moment()), flat_values(*expected, expected->flat_second_moment()));
    for (const CheckpointPath& place : list_checkpoints(run_)) ASSERT_EQ(complaint_of_loading(place.path), "");

    run.cut_metrics(state.step);
    std::string curve;
    for (int64_t step = 1; step <= state.step; ++step) curve += to_json_line(StepMetrics{.step = step}) + "\n";
    ASSERT_EQ(contents_of(run.metrics_path()), curve);
  }
  EXPECT_GT(last_step, 10) << "the trainers were killed before they did anything";
}

}  // namespace
}  // namespace brisk
