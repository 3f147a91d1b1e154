// What a job is, before anything of it is trained: its data is read (and tokenized, as a training would), its model counted,
// its memory and disk planned.
//
//   const PreparedJob prepared(job);                       // UserError where the job cannot be trained
//   const JobSize size = prepared.size();
//   const JobSize twice = prepared.size_of(deeper);        // the same data, another model or batch
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doctor/planning.h"
#include "infer/device_choice.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/task/task.h"

namespace brisk {

class PreparedJob {
 public:
  explicit PreparedJob(Job job);

  const Job& job() const { return job_; }  // with what the data decided
  bool has_tokenizer() const { return data_.tokenizer != nullptr; }
  const Tokenizer& tokenizer() const { return *data_.tokenizer; }
  const std::vector<std::string>& warnings() const { return data_.warnings; }
  const Device& device() const { return *place_.device; }

  JobSize size() const { return size_of(job_); }
  // Of a job that differs in its model, its batch or its length alone. `counts_largest`: the largest micro-batch too,
  // for which memory is planned a few dozen times.
  JobSize size_of(const Job& job, bool counts_largest = true) const;

 private:
  EngineOptions engine_of(const Job& job) const;
  int64_t largest_micro_batch(EngineOptions options) const;
  void count_disk(const Job& job, const MemoryPlan& memory, JobSize& size) const;

  Job job_;
  std::shared_ptr<Task> task_;
  DeviceChoice place_;
  TaskData data_;
};

// Whether a training that takes so much fits into memory of which so much is available.
bool fits_into(const JobSize::Memory& memory, int64_t available);

}  // namespace brisk
