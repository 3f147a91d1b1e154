#include "train/engine/process_group.h"

namespace brisk {

namespace {

class SingleProcess : public ProcessGroup {
 public:
  double sum(double own) override { return own; }
  void sum(StepState& /*step*/) override {}

 protected:
  double first(double own) override { return own; }
};

}  // namespace

ProcessGroup& single_process() {
  static SingleProcess process;
  return process;
}

}  // namespace brisk
