// What a training step runs: a model's tape, planned as a program, and the loss to read from it.
#pragma once

#include "models/model.h"
#include "tensor/program.h"
#include "tensor/tape.h"

namespace brisk {

struct TrainingProgram {
  Tape tape;
  LossValues loss;
  Program program;

  TrainingProgram(const Model& model, const Tape::Options& tape_options, const LossOptions& loss_options,
                  const ProgramOptions& program_options)
      : tape(tape_options), loss(model.loss(tape, loss_options)), program(tape, program_options) {}
};

}  // namespace brisk
