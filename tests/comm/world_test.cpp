#include "comm/world.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/runtime.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

World world_of(Environment environment) {
  Runtime runtime({.threads = 1, .environment = std::move(environment)});
  const RuntimeScope scope(runtime);
  return find_world();
}

Environment with(Environment environment, const Environment& more) {
  environment.insert(more.begin(), more.end());
  return environment;
}

const Environment step_of_slurm = {{"SLURM_JOB_ID", "12"},        {"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"},
                                   {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_NNODES", "2"},  {"SLURM_PROCID", "2"},
                                   {"SLURM_LOCALID", "2"}};

TEST(World, IsOneProcessWhereNobodySaysMore) {
  EXPECT_EQ(world_of({}).start, World::Start::alone);
  EXPECT_EQ(world_of({}).size, 1);
  // The script of a batch job, before srun.
  const Environment script = {{"SLURM_JOB_ID", "12"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_EQ(world_of(script).start, World::Start::alone);
  Runtime runtime({.threads = 1, .environment = script});
  const RuntimeScope scope(runtime);
  EXPECT_NE(advice_to_one_task(find_world()).find("4 tasks"), std::string::npos);
}

TEST(World, IsThatOfSrun) {
  const World plain = world_of(step_of_slurm);
  EXPECT_EQ(plain.start, World::Start::slurm);
  EXPECT_EQ(std::pair(plain.rank, plain.size), std::pair(2, 4));
  EXPECT_EQ(std::pair(plain.local_rank, plain.local_size), std::pair(2, 4));
  EXPECT_EQ(plain.job, "12.3");
  Environment several = step_of_slurm;
  several["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_NE(world_of(several).local_size, 4);
  const World pmix = world_of(with(step_of_slurm, {{"PMIX_RANK", "2"}}));
  EXPECT_EQ(pmix.start, World::Start::open_mpi);
  EXPECT_EQ(std::pair(pmix.rank, pmix.size), std::pair(2, 4));
}

TEST(World, IsThatOfMpirunInASlurmJob) {
  const World world =
      world_of(with({{"SLURM_JOB_ID", "12"}, {"SLURM_NTASKS", "4"}}, {{"OMPI_COMM_WORLD_RANK", "1"},
                                                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(world.start, World::Start::open_mpi);
  EXPECT_EQ(std::pair(world.rank, world.local_size), std::pair(1, 2));
}

TEST(World, IsThatOfTorchrunStyleVariables) {
  const Environment variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};
  const World world = world_of(variables);
  EXPECT_EQ(world.start, World::Start::torchrun);
  EXPECT_EQ(world.local_size, 0);  // nobody says where the others are
  EXPECT_EQ(std::pair(world.address, world.port), std::pair(std::string("head"), 29500));
  EXPECT_EQ(world_of(with(variables, {{"LOCAL_WORLD_SIZE", "2"}})).local_size, 2);
}

TEST(World, RefusesVariablesThatContradictEachOther) {
  const auto problem = [](const Environment& environment) {
    return test::message_of<UserError>([&] { world_of(environment); });
  };
  EXPECT_NE(problem({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("rank 2 of 2"), std::string::npos);
  EXPECT_NE(problem({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).find("RANK is \"one\""), std::string::npos);
}

}  // namespace
}  // namespace brisk
