#include "train/task/task.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "job/tables.h"
#include "support/scratch_folder.h"
#include "tensor/device.h"
#include "train/run/plan/engine_plan.h"

namespace brisk {
namespace {

TEST(TheTableOfTasks, HasEveryTaskThatAJobMayName) {
  std::set<std::string_view> made, named;
  for (const TaskEntry& entry : tasks()) {
    EXPECT_TRUE(made.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(make_task(entry.name)->metrics().empty()) << entry.name;
  }
  for (const TaskTraits& traits : all_tasks()) named.insert(traits.name);
  EXPECT_EQ(made, named);
}

TEST(ATask, PlansItsMicroBatchesBeforeItHasData) {
  for (const TaskEntry& entry : tasks()) {
    Job job = job_from_json_text(fmt::format(R"({{"task": "{}"}})", entry.name), "job");
    resolve_defaults(job);
    const std::unique_ptr<Task> task = make_task(entry.name);
    const EngineOptions options = plan_engine(*task, job, cpu_device(), {{.longest = 128, .mean = 128}}).options;
    EXPECT_GT(plan_memory(options).total(), 0) << entry.name;
    for (const RowCapacity& rows : options.row_sets()) EXPECT_LE(rows.rows, options.capacity.rows) << entry.name;
  }
}

TEST(ATeacher, DecidesForTheCpuBeforeADeviceIsChosen) {
  Job job = job_from_json_text(R"({"task": "classify", "training": {"teacher": "runs/big"}})", "job");
  const std::unique_ptr<Task> task = make_task(job);
  EXPECT_EQ(training_device(*task, job).device, &cpu_device());
  EXPECT_EQ(job.device, "auto");
  job.device = "cuda";
  EXPECT_EQ(test::message_of<UserError>([&] { training_device(*task, job); }),
            "device \"cuda\": a GPU cannot learn from training.teacher yet; use \"cpu\"");
}

}  // namespace
}  // namespace brisk
