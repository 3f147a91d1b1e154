// What a trained classifier says of the texts of a table, for a student to learn: its logits, computed once and kept
// next to the tokens.
//
//   const Teacher teacher = ask_teacher(job, labels, data.rows());      // training.teacher
//   sequences.learn_from(teacher.logits, job.training.distillation_temperature);
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/examples/example_activations.h"
#include "data/table/labels.h"
#include "job/job.h"

namespace brisk {

struct TeacherAnswers {
  std::shared_ptr<const ExampleActivations> logits;  // a row of C floats for each usable row of data.train
  std::string note;                                  // for the user
};

// `labels`: the student's classes, in whose order the logits are; `rows`: the usable rows of data.train. The teacher
// reads the texts with its own tokenizer, up to training.max_length of its tokens. UserError where it is no classifier
// of these classes.
TeacherAnswers ask_teacher(const Job& job, const LabelSet& labels, int64_t rows);

}  // namespace brisk
