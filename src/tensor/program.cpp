#include "tensor/program.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tensor/arena.h"

namespace brisk {

namespace {

size_t index(int i) { return static_cast<size_t>(i); }

}  // namespace

Ledger::Totals PhaseClock::totals() {
  Ledger::Totals totals;
  const std::vector<double> seconds = clock_->seconds();
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (phases_[i] == Phase::count) continue;
    totals.nanoseconds[static_cast<size_t>(phases_[i])] += static_cast<int64_t>(1e9 * seconds[i]);
  }
  return totals;
}

Program::Program(const Tape& tape, const ProgramOptions& options) : tape_(tape), options_(options) {
  find_wanted_gradients();
  plan_gradients();
  fuse_gelu_slopes();
  make_schedule();
  plan_memory();
}

// Backward stops where nothing below is trained: what frozen parameters alone have made needs no gradient.
void Program::find_wanted_gradients() {
  for (const ValueSpec& spec : tape_.values()) wants_gradient_.push_back(spec.gradient);
  for (const Node& node : tape_.nodes()) {
    if (node.parameters.empty() && node.inputs.empty()) continue;
    const bool wants =
        std::any_of(node.parameters.begin(), node.parameters.end(),
                    [](const Parameter* p) { return p->spec.trained; }) ||
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value v) { return wants_gradient_[index(v.id)]; });
    for (const Value output : node.outputs) wants_gradient_[index(output.id)] = wants && tape_.spec(output).gradient;
  }
}

// Walks the tape backwards and decides, once, who writes each gradient first (and overwrites) and who adds to it.
void Program::plan_gradients() {
  const auto& nodes = tape_.nodes();
  const size_t value_count = tape_.values().size();
  std::vector<bool> written(value_count, false);
  gradient_owner_.assign(value_count, -1);
  runs_backward_.assign(nodes.size(), false);
  input_gradient_adds_.resize(nodes.size());
  input_gradient_shared_.resize(nodes.size());
  contribution_offset_.resize(nodes.size());
  parameter_first_.resize(nodes.size());
  struct Written {
    int64_t begin, end;
  };
  std::unordered_map<const Parameter*, std::vector<Written>> parts_written;
  if (!tape_.training()) return;

  for (int n = static_cast<int>(nodes.size()) - 1; n >= 0; --n) {
    const Node& node = nodes[index(n)];
    input_gradient_adds_[index(n)].assign(node.inputs.size(), false);
    input_gradient_shared_[index(n)].assign(node.inputs.size(), false);
    contribution_offset_[index(n)].assign(node.inputs.size(), -1);
    parameter_first_[index(n)].assign(node.parameters.size(), false);
    bool runs = node.is_loss;
    for (const Value output : node.outputs)
      runs = runs || (wants_gradient_[index(output.id)] && written[index(output.id)]);
    if (!runs) continue;
    runs_backward_[index(n)] = true;

    // The residual stream's gradient passes through unchanged: the input takes over the output's buffer, unless
    // somebody wrote the input's gradient already or the same value is also another input (its product still reads the
    // buffer).
    if (node.residual >= 0) {
      const Value stream = node.inputs[index(node.residual)];
      const int uses = static_cast<int>(
          std::count_if(node.inputs.begin(), node.inputs.end(), [&](Value v) { return v.id == stream.id; }));
      const ValueSpec& in = tape_.spec(stream);
      const ValueSpec& out = tape_.spec(node.outputs[0]);
      if (wants_gradient_[index(stream.id)] && !written[index(stream.id)] && uses == 1 && in.type == out.type &&
          !in.read_back && !out.read_back) {
        gradient_owner_[index(stream.id)] = gradient_owner_[index(node.outputs[0].id)];
        input_gradient_shared_[index(n)][index(node.residual)] = true;
        written[index(stream.id)] = true;
      }
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int id = node.inputs[i].id;
      if (!wants_gradient_[index(id)] || input_gradient_shared_[index(n)][i]) continue;
      input_gradient_adds_[index(n)][i] = written[index(id)];
      if (!written[index(id)]) gradient_owner_[index(id)] = id;
      written[index(id)] = true;
    }
    for (size_t p = 0; p < node.parameters.size(); ++p) {
      Parameter* parameter = node.parameters[p];
      if (!parameter->spec.trained) continue;
      Written part{0, std::max(parameter->spec.rows, parameter->spec.cols)};
      if (!node.parameter_parts.empty()) {
        part.begin = node.parameter_parts[p].first;
        part.end = part.begin + node.parameter_parts[p].count;
      }
      bool first = true;
      std::vector<Written>& others = parts_written[parameter];
      for (const Written& other : others) {
        if (other.end <= part.begin || part.end <= other.begin) continue;
        BRISK_CHECK(other.begin <= part.begin && part.end <= other.end,
                    "{}: a gradient that is written in part cannot be added to as a whole", parameter->spec.name);
        first = false;
      }
      parameter_first_[index(n)][p] = first;
      others.push_back(part);
      // A tied parameter is complete after its last use: move it to the end.
      if (others.size() > 1) {
        const auto before = std::find(completion_order_.begin(), completion_order_.end(), parameter);
        completed_by_.erase(completed_by_.begin() + (before - completion_order_.begin()));
        completion_order_.erase(before);
      }
      completion_order_.push_back(parameter);
      completed_by_.push_back(n);
    }
  }
}

void Program::fuse_gelu_slopes() {
  gelu_argument_.assign(tape_.values().size(), -1);
  if (options_.backend != Backend::cuda || !tape_.training()) return;
  std::vector<int> uses(tape_.values().size(), 0);
  for (const Node& node : tape_.nodes()) {
    for (const Value input : node.inputs) ++uses[index(input.id)];
  }
  for (const Node& writer : tape_.nodes()) {
    const int argument = writer.op->gelu_argument();
    if (argument < 0) continue;
    const Value value = writer.outputs[0];
    if (uses[index(value.id)] != 1 || !wants_gradient_[index(value.id)] || tape_.spec(value).read_back) continue;
    for (size_t n = 0; n < tape_.nodes().size(); ++n) {
      const Node& reader = tape_.nodes()[n];
      // Of one layer, so that what is recomputed is there for both.
      if (!reader.op->applies_gelu_slope() || reader.inputs[0].id != value.id || reader.layer != writer.layer) continue;
      if (runs_backward_[n]) gelu_argument_[index(value.id)] = writer.outputs[index(argument)].id;
    }
  }
}

void Program::make_schedule() {
  const auto& nodes = tape_.nodes();
  const int node_count = static_cast<int>(nodes.size());
  recomputed_.assign(tape_.values().size(), false);
  for (int n = 0; n < node_count; ++n) {
    if (!(tape_.training() && nodes[index(n)].is_loss)) forward_steps_.push_back({n, Pass::forward});
  }
  if (!tape_.training()) return;

  const int64_t every = options_.checkpoint_every;
  const auto group_of = [&](int n) -> int64_t {
    const int layer = nodes[index(n)].layer;
    return every > 0 && layer < tape_.layers() ? layer / every : -1;
  };
  std::vector<int> producer(tape_.values().size(), -1), last_reader(tape_.values().size(), -1);
  for (int n = 0; n < node_count; ++n) {
    for (const Value output : nodes[index(n)].outputs) producer[index(output.id)] = n;
    for (const Value input : nodes[index(n)].inputs) last_reader[index(input.id)] = n;
  }

  std::vector<bool> needed(tape_.values().size(), false);  // by nodes of this group; others' inputs are not inside it
  for (int last = node_count - 1; last >= 0;) {
    const int64_t group = group_of(last);
    int first = last;
    while (group >= 0 && first > 0 && group_of(first - 1) == group) --first;

    if (group >= 0) {
      // Inside values: made and read in this group alone.
      const auto is_inside = [&](int value) {
        return producer[index(value)] >= first && last_reader[index(value)] <= last && producer[index(value)] <= last &&
               !tape_.values()[index(value)].read_back;
      };
      for (int n = first; n <= last; ++n) {
        if (!runs_backward_[index(n)]) continue;
        const Node& node = nodes[index(n)];
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (node.input_in_backward[i]) needed[index(node.inputs[i].id)] = true;
        }
        for (size_t o = 0; o < node.outputs.size(); ++o) {
          if (node.output_in_backward[o]) needed[index(node.outputs[o].id)] = true;
        }
      }
      std::vector<int> again;
      for (int n = last; n >= first; --n) {
        const Node& node = nodes[index(n)];
        const bool wanted = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](Value v) { return needed[index(v.id)] && is_inside(v.id); });
        if (!wanted) continue;
        again.push_back(n);
        for (const Value input : node.inputs) needed[index(input.id)] = true;
        for (const Value output : node.outputs) {
          if (is_inside(output.id)) recomputed_[index(output.id)] = true;
        }
      }
      for (auto n = again.rbegin(); n != again.rend(); ++n) backward_steps_.push_back({*n, Pass::recompute});
    }
    for (int n = last; n >= first; --n) {
      if (runs_backward_[index(n)]) backward_steps_.push_back({n, Pass::backward});
    }
    last = first - 1;
  }
}

// The next step's op wrote what this one's read, and nobody else adds to its gradient in between.
bool Program::prepares(const Step& step, const Step& next) const {
  if (options_.backend != Backend::cuda || step.pass != Pass::backward || next.pass != Pass::backward) return false;
  const Node& reader = tape_.nodes()[index(step.node)];
  const Node& writer = tape_.nodes()[index(next.node)];
  if (!reader.op->prepares_gradient() || !writer.op->wants_prepared_gradient(tape_, writer)) return false;
  return reader.inputs[0].id == writer.outputs[0].id && wants_gradient_[index(writer.outputs[0].id)];
}

void Program::plan_memory() {
  const auto& nodes = tape_.nodes();
  const size_t value_count = tape_.values().size();
  const int end = static_cast<int>(forward_steps_.size() + backward_steps_.size());
  ArenaPlanner planner;
  // One interval per (value, instance); -1 = not made.
  std::vector<Lifetime> forward_life(value_count), backward_life(value_count), gradient_life(value_count);

  const auto touch_value = [&](Value value, int time, bool in_backward) {
    const bool second = in_backward && recomputed_[index(value.id)];
    (second ? backward_life : forward_life)[index(value.id)].touch(time);
  };
  const auto touch_gradient = [&](Value value, int time) {
    if (gradient_owner_[index(value.id)] >= 0) gradient_life[index(gradient_owner_[index(value.id)])].touch(time);
  };

  int time = 0;
  for (const Step& step : forward_steps_) {
    for (const Value value : nodes[index(step.node)].inputs) touch_value(value, time, false);
    for (const Value value : nodes[index(step.node)].outputs) touch_value(value, time, false);
    ++time;
  }
  for (const Step& step : backward_steps_) {
    const Node& node = nodes[index(step.node)];
    const bool everything = step.pass == Pass::recompute || node.is_loss;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (everything || node.input_in_backward[i]) touch_value(node.inputs[i], time, true);
      const int argument = gelu_argument_[index(node.inputs[i].id)];
      if (step.pass == Pass::backward && argument >= 0) touch_value({argument}, time, true);
      if (step.pass == Pass::backward && wants_gradient_[index(node.inputs[i].id)])
        touch_gradient(node.inputs[i], time);
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (everything || node.output_in_backward[o]) touch_value(node.outputs[o], time, true);
      if (step.pass == Pass::backward && wants_gradient_[index(node.outputs[o].id)])
        touch_gradient(node.outputs[o], time);
    }
    ++time;
  }

  std::vector<int> forward_buffer(value_count, -1), backward_buffer(value_count, -1), gradient_buffer(value_count, -1);
  for (size_t v = 0; v < value_count; ++v) {
    const Value value{static_cast<int>(v)};
    const bool read_back = tape_.values()[v].read_back;
    if (read_back && forward_life[v].used()) forward_life[v].touch(end);
    if (read_back && gradient_life[v].used()) gradient_life[v].touch(end);
    if (forward_life[v].used()) forward_buffer[v] = planner.add(tape_.capacity_bytes(value), forward_life[v]);
    if (backward_life[v].used()) backward_buffer[v] = planner.add(tape_.capacity_bytes(value), backward_life[v]);
    if (gradient_life[v].used()) gradient_buffer[v] = planner.add(tape_.capacity_bytes(value), gradient_life[v]);
  }
  time = 0;
  std::vector<std::pair<Step*, int>> scratch;
  for (std::vector<Step>* steps : {&forward_steps_, &backward_steps_}) {
    for (Step& step : *steps) {
      const Node& node = nodes[index(step.node)];
      const bool backward = step.pass == Pass::backward;
      step.scratch_bytes = backward ? node.backward_scratch : node.forward_scratch;
      const int64_t on_gpu = backward ? node.gpu_backward_scratch : node.gpu_forward_scratch;
      if (options_.backend == Backend::cuda && on_gpu >= 0) step.scratch_bytes = on_gpu;
      Lifetime life;
      life.touch(time++);
      if (step.scratch_bytes > 0) scratch.emplace_back(&step, planner.add(step.scratch_bytes, life));
    }
  }
  std::vector<std::pair<Step*, int>> prepared;
  std::vector<std::pair<int64_t*, int>> contributions;
  for (size_t s = 0; s < backward_steps_.size(); ++s) {
    Step& step = backward_steps_[s];
    Lifetime life;
    life.touch(static_cast<int>(forward_steps_.size() + s));
    if (step.pass == Pass::backward) {
      const Op& op = *nodes[index(step.node)].op;
      const std::vector<Value>& inputs = nodes[index(step.node)].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const bool adds = op.overwrites_gradients() && input_gradient_adds_[index(step.node)][i];
        const bool unwanted = op.writes_every_gradient() && !wants_gradient_[index(inputs[i].id)];
        if (!adds && !unwanted) continue;
        contributions.emplace_back(&contribution_offset_[index(step.node)][i],
                                   planner.add(tape_.capacity_bytes(inputs[i]), life));
      }
    }
    if (s + 1 == backward_steps_.size() || !prepares(step, backward_steps_[s + 1])) continue;
    step.prepares_for = static_cast<int>(s + 1);
    const ValueSpec& spec = tape_.spec(nodes[index(backward_steps_[s + 1].node)].outputs[0]);
    life.touch(static_cast<int>(forward_steps_.size() + s + 1));
    const int64_t bytes = tape_.rows(spec.row_set).rows * spec.cols * size_of(tape_.activation_type());
    prepared.emplace_back(&backward_steps_[s + 1], planner.add(bytes, life));
  }
  arena_bytes_ = planner.place();

  const auto offsets = [&](const std::vector<int>& buffers) {
    std::vector<int64_t> result(value_count, -1);
    for (size_t v = 0; v < value_count; ++v) {
      if (buffers[v] >= 0) result[v] = planner.offset(buffers[v]);
    }
    return result;
  };
  forward_offset_ = offsets(forward_buffer);
  backward_offset_ = forward_offset_;
  const std::vector<int64_t> second = offsets(backward_buffer);
  for (size_t v = 0; v < value_count; ++v) {
    if (recomputed_[v]) backward_offset_[v] = second[v];
  }
  gradient_offset_.assign(value_count, -1);
  const std::vector<int64_t> own = offsets(gradient_buffer);
  for (size_t v = 0; v < value_count; ++v) {
    if (gradient_owner_[v] >= 0) gradient_offset_[v] = own[index(gradient_owner_[v])];
  }
  for (const auto& [step, buffer] : scratch) step->scratch_offset = planner.offset(buffer);
  for (const auto& [step, buffer] : prepared) step->prepared_offset = planner.offset(buffer);
  for (const auto& [offset, buffer] : contributions) *offset = planner.offset(buffer);
}

void Program::allocate(Device& device) { own_arena_ = Buffer(device, arena_bytes_); }

void Program::allocate_with(const Program& other) {
  if (other.arena_->bytes() < arena_bytes_) return allocate(other.arena_->device());
  arena_ = other.arena_;
}

int64_t Program::loss_scratch_bytes() const {
  int64_t most = 0;
  for (const std::vector<Step>* steps : {&forward_steps_, &backward_steps_}) {
    for (const Step& step : *steps) {
      if (tape_.nodes()[index(step.node)].op->family() == OpFamily::loss) most = std::max(most, step.scratch_bytes);
    }
  }
  return most;
}

std::vector<double> Program::flop(std::span<const RowMeans> sets) const {
  std::vector<double> flop;
  for (size_t n = 0; n < tape_.nodes().size(); ++n) {
    const Node& node = tape_.nodes()[n];
    const OpCost cost = node.op->cost(tape_, node, sets);
    flop.push_back(cost.forward);
    if (!runs_backward_[n]) continue;
    flop.back() += cost.backward;
    if (!node.inputs.empty() && wants_gradient_[index(node.inputs[0].id)]) flop.back() += cost.input_gradient;
    if (!node.parameters.empty() && node.parameters[0]->spec.trained) flop.back() += cost.parameter_gradient;
  }
  return flop;
}

void Program::run(const Step& step, const DeviceBatch& batch, Ledger& ledger) {
  const Node& node = tape_.nodes()[index(step.node)];
  const OpFamily family = node.op->family();
  Ledger::Scope scope(ledger, step.pass == Pass::forward ? forward_phase(family) : backward_phase(family));
  DeviceAccess access(arena_->device());
  OpRun op_run(*this, node, step, batch);
  if (step.pass == Pass::backward) {
    node.op->backward(op_run);
    const std::vector<int64_t>& contributions = contribution_offset_[index(step.node)];
    for (size_t i = 0; i < contributions.size(); ++i) {
      const int input = static_cast<int>(i);
      if (contributions[i] < 0 || !input_gradient_adds_[index(step.node)][i]) continue;
      node.op->add_gradient(op_run, op_run.input_gradient(input), op_run.shared_gradient(input));
    }
  } else {
    node.op->forward(op_run);
  }
  if (clock_ != nullptr) clock_->stamp(step.pass == Pass::forward ? forward_phase(family) : backward_phase(family));
}

void Program::forward(const DeviceBatch& batch, Ledger& ledger) {
  BRISK_CHECK(*arena_, "allocate() comes before forward()");
  for (size_t s = 0; s < batch.sets.size(); ++s) {
    BRISK_CHECK(batch.sets[s].rows.rows <= tape_.row_sets()[s].rows, "{} rows in a program for {}",
                batch.sets[s].rows.rows, tape_.row_sets()[s].rows);
  }
  ++forward_passes_;
  for (const Step& step : forward_steps_) run(step, batch, ledger);
}

void Program::backward(const DeviceBatch& batch, Ledger& ledger, const GradientReady& ready) {
  BRISK_CHECK(tape_.training(), "a tape recorded for evaluation has no backward");
  size_t complete = 0;
  for (const Step& step : backward_steps_) {
    run(step, batch, ledger);
    if (!ready || step.pass != Pass::backward) continue;
    for (; complete < completed_by_.size() && completed_by_[complete] == step.node; ++complete) {
      ready(*completion_order_[complete]);
    }
  }
}

namespace {
Tensor view(const Tape& tape, const Buffer& arena, Value value, int64_t offset, const DeviceBatch& batch) {
  if (offset < 0) return {};
  const ValueSpec& spec = tape.spec(value);
  const int64_t rows = spec.fixed_rows > 0 ? spec.fixed_rows : batch.sets[index(spec.row_set)].rows.rows;
  return matrix(static_cast<char*>(arena.data()) + offset, spec.type, rows, spec.cols);
}
}  // namespace

Tensor Program::value(Value value, const DeviceBatch& batch) const {
  BRISK_CHECK(tape_.spec(value).read_back, "only a value marked read_back can be read after the run");
  return view(tape_, *arena_, value, forward_offset_[index(value.id)], batch);
}

Tensor Program::gradient(Value value, const DeviceBatch& batch) const {
  BRISK_CHECK(tape_.spec(value).read_back, "only a value marked read_back can be read after the run");
  return view(tape_, *arena_, value, gradient_offset_[index(value.id)], batch);
}

Tensor OpRun::input(int i) const {
  const auto& offsets = step_.pass == Program::Pass::forward ? program_.forward_offset_ : program_.backward_offset_;
  const Value value = node_.inputs[index(i)];
  return view(program_.tape_, *program_.arena_, value, offsets[index(value.id)], batch_);
}

Tensor OpRun::output(int i) const {
  const auto& offsets = step_.pass == Program::Pass::forward ? program_.forward_offset_ : program_.backward_offset_;
  const Value value = node_.outputs[index(i)];
  return view(program_.tape_, *program_.arena_, value, offsets[index(value.id)], batch_);
}

Tensor OpRun::output_gradient(int i) const {
  const Value value = node_.outputs[index(i)];
  return view(program_.tape_, *program_.arena_, value, program_.gradient_offset_[index(value.id)], batch_);
}

Tensor OpRun::shared_gradient(int i) const {
  const Value value = node_.inputs[index(i)];
  return view(program_.tape_, *program_.arena_, value, program_.gradient_offset_[index(value.id)], batch_);
}

Tensor OpRun::input_gradient(int i) const {
  const Value value = node_.inputs[index(i)];
  const int64_t contribution = program_.contribution_offset_[node_index()][index(i)];
  if (contribution >= 0) return view(program_.tape_, *program_.arena_, value, contribution, batch_);
  if (!program_.wants_gradient_[index(value.id)] || program_.input_gradient_shared_[node_index()][index(i)]) return {};
  return shared_gradient(i);
}

bool OpRun::input_gradient_adds(int i) const {
  return program_.input_gradient_adds_[node_index()][index(i)] &&
         program_.contribution_offset_[node_index()][index(i)] < 0;
}

Tensor OpRun::gelu_slope_at() const {
  const int argument = program_.gelu_argument_[index(node_.inputs[0].id)];
  if (argument < 0) return {};
  return view(program_.tape_, *program_.arena_, Value{argument}, program_.backward_offset_[index(argument)], batch_);
}

bool OpRun::output_gradient_has_gelu_slope() const { return program_.gelu_argument_[index(node_.outputs[0].id)] >= 0; }

Tensor OpRun::prepared_gradient() const {
  if (step_.prepared_offset < 0) return {};
  const ValueSpec& spec = program_.tape_.spec(node_.outputs[0]);
  return matrix(static_cast<char*>(program_.arena_->data()) + step_.prepared_offset, program_.tape_.activation_type(),
                batch_.sets[index(spec.row_set)].rows.rows, spec.cols);
}

std::optional<OpRun> OpRun::prepares_for() const {
  if (step_.prepares_for < 0) return {};
  const Program::Step& next = program_.backward_steps_[index(step_.prepares_for)];
  return OpRun(program_, program_.tape_.nodes()[index(next.node)], next, batch_);
}

bool OpRun::parameter_gradient_adds(int i) const {
  return !batch_.first_of_step || !program_.parameter_first_[node_index()][index(i)];
}

Tensor OpRun::scratch(DType type, int64_t rows, int64_t cols) const {
  BRISK_CHECK(rows * cols * size_of(type) <= step_.scratch_bytes, "{}: scratch of {} bytes is too small",
              node_.op->name(), step_.scratch_bytes);
  return matrix(static_cast<char*>(program_.arena_->data()) + step_.scratch_offset, type, rows, cols);
}

}  // namespace brisk
