#include "comm/gpu_choice.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "comm/shared_memory.h"

namespace brisk {
namespace {

const std::vector<std::string> kFour = {"0000:17:00.0", "0000:31:00.0", "0000:65:00.0", "0000:ca:00.0"};

GpuPlace place(const std::string& machine, int local_rank, const std::vector<std::string>& gpus,
               const std::string& host_id = "") {
  return {.machine = machine, .local_rank = local_rank, .gpus = gpus, .nccl_host_id = host_id};
}

std::vector<int> choices(const std::vector<GpuPlace>& ranks) {
  std::vector<int> all;
  for (int rank = 0; rank < std::ssize(ranks); ++rank) all.push_back(choose_gpu(ranks, rank));
  return all;
}

std::string refusal(const std::vector<GpuPlace>& ranks) {
  try {
    choices(ranks);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

using Choices = std::vector<int>;

TEST(GpuOfRank, IsThatOfItsLocalRank) {
  EXPECT_EQ(choices({place("a", 0, kFour), place("a", 1, kFour), place("a", 2, kFour)}), (Choices{0, 1, 2}));
  EXPECT_EQ(choices({place("a", 3, kFour), place("a", 1, kFour)}), (Choices{3, 1}));
}

TEST(GpuOfRank, StartsAgainOnEveryMachine) {
  EXPECT_EQ(choices({place("a", 0, kFour), place("a", 1, kFour), place("b", 0, kFour), place("b", 1, kFour)}),
            (Choices{0, 1, 0, 1}));
}

TEST(GpuOfRank, IsTheOnlyOneThatItsLauncherShowsIt) {
  std::vector<GpuPlace> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(place("a", rank, {kFour[static_cast<size_t>(rank)]}));
  EXPECT_EQ(choices(ranks), (Choices{0, 0, 0, 0}));
}

// Two tasks for each socket, which see its GPUs.
TEST(GpuOfRank, IsAmongThoseThatItsPeersSeeToo) {
  const std::vector<std::string> first = {kFour[0], kFour[1]}, second = {kFour[2], kFour[3]};
  EXPECT_EQ(choices({place("a", 0, first), place("a", 1, first), place("a", 2, second), place("a", 3, second)}),
            (Choices{0, 1, 0, 1}));
}

TEST(GpuOfRank, GoesByTheOrderOfRanksWhereNobodySaysMore) {
  EXPECT_EQ(choices({place("a", 0, kFour), place("a", 0, kFour), place("a", 0, kFour)}), (Choices{0, 1, 2}));
}

TEST(GpuOfRank, MoreRanksThanGpusAreRefusedWithWhatToStart) {
  const std::vector<std::string> two = {kFour[0], kFour[1]};
  const std::string said = refusal({place("a", 0, two), place("a", 1, two), place("a", 2, two)});
  EXPECT_NE(said.find("3 ranks on a machine where each sees 2 GPUs: a GPU is for one rank"), std::string::npos) << said;
  EXPECT_NE(said.find("brisk launch -n 2"), std::string::npos) << said;
  EXPECT_NE(said.find("NCCL_HOSTID"), std::string::npos) << said;
}

TEST(GpuOfRank, TheSameGpuByDifferentViewsIsRefused) {
  const std::string said =
      refusal({place("a", 0, {kFour[1]}), place("a", 1, {kFour[1], kFour[0]}), place("a", 2, {kFour[3]})});
  EXPECT_EQ(said, "");  // the second takes its second one
  const std::string same = refusal({place("a", 0, {kFour[1]}), place("a", 0, {kFour[1], kFour[0]})});
  EXPECT_NE(same.find("ranks 0 and 1 would compute on the same GPU, 0000:31:00.0"), std::string::npos) << same;
}

TEST(GpuOfRank, IsSharedWhereEachHasAHostIdOfItsOwn) {
  const std::vector<std::string> one = {kFour[0]};
  EXPECT_EQ(choices({place("a", 0, one, "x"), place("a", 1, one, "y")}), (Choices{0, 0}));
  EXPECT_NE(refusal({place("a", 0, one, "x"), place("a", 1, one, "x")}), "");
  EXPECT_NE(refusal({place("a", 0, one, "x"), place("a", 1, one)}), "");
}

TEST(GpuOfRank, ARankWithoutOneIsNamed) {
  EXPECT_NE(refusal({place("a", 0, kFour), place("a", 1, {})}).find("rank 1 sees no GPU, and others do"),
            std::string::npos);
}

TEST(GpuOfRank, IsKnownToAllAfterOneMessage) {
  auto group = make_thread_group(2);
  std::vector<std::vector<GpuPlace>> got(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const GpuPlace own = rank == 0 ? place("a", 0, kFour) : place("b", 7, {}, "own");
      got[rank] = gather_places(own, *group[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<GpuPlace>& places : got) {
    ASSERT_EQ(places.size(), 2);
    EXPECT_EQ(places[0].gpus, kFour);
    EXPECT_EQ(places[0].machine, "a");
    EXPECT_EQ(places[1].gpus.size(), 0);
    EXPECT_EQ(places[1].local_rank, 7);
    EXPECT_EQ(places[1].nccl_host_id, "own");
  }
}

}  // namespace
}  // namespace brisk
