// Training steps on a GPU: a step is queued as a whole and waited for once. What recurs with the same sizes is recorded
// as a graph when it comes the second time. Now and then a step is queued op by op, with stamps of the GPU's clock
// between; the ledger divides the others as that one was.
//
// With other ranks, what these exchange is queued between the graphs and never recorded in one: their micro-batches have other
// sizes, so they record and replay at other steps, and NCCL wants all or none to (docs/decisions.md). A graph of backward marks
// where parts of the gradient are complete, and their reductions wait for these marks beside it.
#include <chrono>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/runtime.h"
#include "infer/forward/batch_buffer.h"
#include "train/engine/step_backend.h"

namespace brisk {

namespace {

constexpr int64_t kStepsBetweenSamples = 1000;
constexpr int64_t kMostWaiting = 16;  // steps, for one whose sizes have all run before
constexpr size_t kMostGraphs = 64;    // of micro-batches; a graph takes about a megabyte

// BRISK_CUDA_GRAPHS=0: every op is launched by itself, for finding faults.
bool wants_graphs() { return Runtime::current().environment("BRISK_CUDA_GRAPHS") != "0"; }

class GpuStepBackend : public StepBackend {
 public:
  GpuStepBackend(Device& device, TrainingProgram& training, Nccl* gpus)
      : StepBackend(device),
        device_(device),
        training_(training),
        gpus_(gpus),
        buffer_(device, training.tape),
        pass_done_(device.mark()) {
    batch_.step_loss_scale = &state().numbers()->loss_scale;
    batch_.step_key = &state().numbers()->step_key;
  }

  void begin_step(bool has_pass) override { is_busy_ = has_pass && !pass_done_->reached(); }

  void begin_pass(const Pass& pass) override {
    state().begin_pass(static_cast<float>(pass.scaling / pass.loss_divisor),
                       random_key({pass.seed, static_cast<uint64_t>(pass.step)}));
    clock_.reset();
    samples_ = pass.may_sample && wants_sample();
    is_settled_ = true;
    micro_batches_ = 0;
  }

  void run_micro_batch(const MicroBatch& batch, bool first, bool last, Ledger& ledger) override {
    // Two sets of slots in turn: while one is read by a step that is not done, the other is filled.
    const size_t slot = 2 * micro_batches_++ + static_cast<size_t>(passes_ % 2);
    {
      Ledger::Scope scope(ledger, Phase::copy);
      buffer_.queue(batch, slot, batch_.sets);
    }
    batch_.first_of_step = first;
    const Shape shape = shape_of(batch_, last);
    if (graphs_.size() >= kMostGraphs && !graphs_.contains(shape)) {
      wait();
      graphs_.clear();
    }
    Recorded& recorded = graphs_[shape];
    const int64_t due = last_sample_ == 0 ? 1 : last_sample_ + kStepsBetweenSamples - 1;
    const bool is_overdue = passes_ >= due + kMostWaiting;
    samples_ = samples_ && (recorded.seen > 0 || is_overdue);
    if (samples_ && !clock_) clock_ = std::make_unique<PhaseClock>(device_);
    Program& program = training_.program;
    program.set_clock(samples_ ? clock_.get() : nullptr);
    Ledger unseen;
    const bool was_known = run(recorded, samples_, [&] {
      program.forward(batch_, unseen);
      run_backward(program, batch_, last, unseen);
      state().add_loss(program.value(training_.loss.sums, batch_), first);
    });
    if (!was_known) is_settled_ = false;
  }

  void end_pass() override {
    training_.program.set_clock(nullptr);
    if (!samples_) clock_.reset();
    ++passes_;
    settled_ = is_settled_ ? settled_ + 1 : 0;
    pass_done_->set();
  }

  void run_update(const std::function<void()>& work) override {
    if (clock_) {
      clock_->restart();
      work();
    } else if (gpus_ != nullptr) {
      work();  // phase by phase
    } else {
      run(update_, false, work);
    }
    state().finish();
  }

  void run_phase(Phase phase, Ledger& /*ledger*/, const std::function<void()>& work) override {
    if (gpus_ != nullptr && !clock_ && phase != Phase::communication) {
      run(phases_[phase], false, work);
      return;
    }
    work();
    if (clock_) clock_->stamp(phase);
    if (stamps_ && gpus_ != nullptr) work_.all_counted = false;
  }

  bool can_run_ahead() const override { return !clock_ && !wants_sample(); }

  StepNumbers result(Ledger& ledger) override {
    // The GPU had work from the last step to here.
    if (is_busy_ && !state().is_done()) ledger.hide_host(last_totals_, shares_);
    if (gpus_ != nullptr) wait_with_others([&] { return state().is_done(); });
    const StepNumbers numbers = state().result();
    if (clock_) {
      shares_ = clock_->totals();
      last_sample_ = passes_;
      clock_.reset();
    }
    if (passes_ == 1) shares_.nanoseconds[static_cast<size_t>(Phase::start_up)] = 1;  // algorithms were chosen
    ledger.spread(shares_);
    last_totals_ = ledger.totals();
    return numbers;
  }

  void wait() override {
    if (gpus_ == nullptr) return device_.wait();
    // This rank ends with an error: what it has queued for the others may wait for ever.
    if (std::uncaught_exceptions() > 0) gpus_->abort();
    const std::unique_ptr<DeviceMark> end = device_.mark();
    end->set();
    wait_with_others([&] { return end->reached(); });
  }
  int64_t settled_passes() const override { return settled_; }

  void watch_gpu() override {
    stamps_ = device_.clock();
    work_ = {};
  }
  GpuWork gpu_work() override {
    if (!stamps_) return {};
    const std::vector<double> between = stamps_->seconds();
    for (size_t i = 0; i < between.size(); i += 2) work_.busy_seconds += between[i];
    stamps_.reset();
    return work_;
  }

 private:
  // All that decides what is recorded: whether it is the step's first micro-batch, whether somebody hears of its gradients,
  // and of each row set its sizes and which columns it has.
  using Shape = std::vector<int64_t>;
  Shape shape_of(const DeviceBatch& batch, bool last) const {
    Shape shape = {batch.first_of_step, last && is_heard()};
    for (const DeviceBatch::Set& set : batch.sets) {
      shape.insert(shape.end(), {set.rows.rows, set.rows.sequences, set.rows.longest, set.rows.even});
      const void* const columns[] = {set.tokens, set.types, set.targets, set.weights, set.source};
      for (const void* column : columns) shape.push_back(column != nullptr);
    }
    return shape;
  }

  struct Recorded {
    int64_t seen = 0;
    std::unique_ptr<DeviceGraph> graph;
    std::function<void()> after;  // GradientListener::take_recorded
  };

  // The GPU may wait for one that is gone: a look at the others ends that.
  template <typename Done>
  void wait_with_others(const Done& done) {
    using Clock = std::chrono::steady_clock;
    constexpr auto kNap = std::chrono::microseconds(20);
    constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
    auto looked = Clock::now();
    while (!done()) {
      std::this_thread::sleep_for(kNap);
      if (const auto now = Clock::now(); now - looked >= kBetweenLooks) {
        gpus_->check();
        looked = now;
      }
    }
  }

  // Whether the next step is to be measured op by op: the second, and one in a thousand, as soon as its sizes have run
  // before, so that no choice of an algorithm is in it.
  bool wants_sample() const {
    return passes_ >= 1 && (last_sample_ == 0 || passes_ + 1 - last_sample_ >= kStepsBetweenSamples);
  }

  // Runs `work`, from its second time on as a graph. Whether nothing was new in it: it had run before, and was not
  // recorded now.
  bool run(Recorded& recorded, bool op_by_op, const std::function<void()>& work) {
    const bool is_new = recorded.seen++ == 0;
    const bool as_graph = !op_by_op && wants_graphs() && !is_new;
    const bool is_recorded = recorded.graph != nullptr;
    if (as_graph && !is_recorded) {
      recorded.graph = device_.record(work);
      recorded.after = take_recorded();
    }
    if (stamps_) stamps_->stamp();
    if (as_graph) {
      recorded.graph->run();
      if (recorded.after) recorded.after();
    } else {
      work();
    }
    if (stamps_) {
      stamps_->stamp();
      work_.kernels += as_graph ? recorded.graph->kernels() : 0;
      work_.all_counted = work_.all_counted && as_graph;
    }
    return as_graph ? is_recorded : !is_new;
  }

  Device& device_;
  TrainingProgram& training_;
  Nccl* gpus_;  // that connects other ranks; null: there are none
  BatchBuffer buffer_;
  DeviceBatch batch_;
  std::map<Shape, Recorded> graphs_;  // of micro-batches
  Recorded update_;
  std::map<Phase, Recorded> phases_;  // of the update, where there are other ranks
  std::unique_ptr<DeviceMark> pass_done_;
  bool is_busy_ = false;                  // from the last step to the begin of this one
  int64_t passes_ = 0, last_sample_ = 0;  // so far; the one that was measured op by op last
  int64_t settled_ = 0;                   // passes in a row, the last ones, in which nothing was new
  // Of the pass:
  size_t micro_batches_ = 0;
  bool samples_ = false, is_settled_ = true;
  std::unique_ptr<PhaseClock> clock_;    // where it is measured op by op, until its result is read
  Ledger::Totals shares_;                // of the phases in the pass that was measured last
  Ledger::Totals last_totals_;           // of the ledger when the last step was done
  std::unique_ptr<DeviceClock> stamps_;  // around all that is queued, while it is watched
  GpuWork work_;                         // since then
};

}  // namespace

std::unique_ptr<StepBackend> make_gpu_backend(Device& device, TrainingProgram& training, Nccl* gpus) {
  return std::make_unique<GpuStepBackend>(device, training, gpus);
}

}  // namespace brisk
