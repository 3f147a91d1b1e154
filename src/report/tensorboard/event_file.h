// What TensorBoard reads: RUN/tensorboard/events.out.tfevents.<time>.<host>.<process>, one file for each process that
// worked on the run.
//
//   cut_events(folder, state.step);                         // a resumed run writes the steps after it again
//   EventFile events(folder, state.step);
//   events.scalar("loss/train", step, 5.31);
//   events.text("samples/And God said", step, "And God said unto Moses");
//   events.histogram("parameters/blocks.0.qkv.weight", step, histogram);
//   events.write();                                         // what was added since, in one piece
//
// A file starts with the version and the step after which its process began: a TensorBoard that is running when a run
// is resumed forgets the later steps of the process before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/record_log.h"
#include "report/tensorboard/histogram.h"

namespace brisk {

class EventFile {
 public:
  EventFile(const std::string& folder, int64_t last_step);  // UserError where the folder cannot be made or written

  void scalar(std::string_view tag, int64_t step, double value);  // nothing where it is not finite
  void text(std::string_view tag, int64_t step, std::string_view valid_utf8);
  void histogram(std::string_view tag, int64_t step, const Histogram& histogram);

  void write();
  void sync() { file_.sync(); }
  const std::string& path() const { return file_.path(); }
  const std::string& problem() const { return file_.problem(); }  // empty: none

 private:
  RecordLog file_;
  std::string waiting_;
};

// Removes the events with step > last_step from the files of `folder`, and what a crash cut short. Atomic file by file.
// Returns the events removed.
int64_t cut_events(const std::string& folder, int64_t last_step);

}  // namespace brisk
