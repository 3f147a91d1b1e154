// A Parameter is an fp32 master, a slice of the flat gradient, optimizer state, and, in bf16 or f16, a compute copy
// that the optimizer's pass rewrites. All of one kind lie in one flat array, in the order in which backward completes
// the gradients, so that a reduction over machines can start early.
//
//   ParameterStore store;
//   Parameter* w = store.add({.name = "blocks.0.qkv.weight", .rows = 3 * D, .cols = D, .decays = true});
//   store.allocate(cpu_device(), order, DType::bf16, ParameterStore::Purpose::training);
//   store.initialise(seed);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/device.h"
#include "tensor/tensor.h"

namespace brisk {

struct Initial {
  // Sinusoids are a table of positions: column pair i of row p is the sine and the cosine of p / 10000^(2i / cols). The two are
  // neighbours (`interleaved_sinusoids`), or all sines come before all cosines.
  enum class Kind : uint8_t { zeros, ones, normal, uniform, sinusoids, interleaved_sinusoids } kind = Kind::zeros;
  double deviation = 0;  // of normal; of uniform, the largest distance from the mean
  double mean = 0;       // of both
};

struct ParameterSpec {
  std::string name;
  int64_t rows = 1;
  int64_t cols = 1;
  bool decays = false;      // weight decay: matrices yes, norms and biases no
  bool multiplies = false;  // used as a matrix in products: has a compute copy where these are not f32
  Initial initial;
  std::vector<int64_t> parts;  // rows of the logical matrices stacked in it (Q, K, V apart); empty = one
  bool hidden = false;         // a matrix between hidden layers, not a table, head, norm or bias: what Muon updates
  bool trained = true;         // false: frozen; it has no gradient and no optimizer state
  bool adapter = false;        // one of the two factors of a low-rank change to another matrix
  std::string component;       // that it is counted in (models/model_costs.h); empty: one by its name
};

struct Parameter {
  ParameterSpec spec;
  int64_t index = 0;                   // in ParameterStore::all()
  int64_t offset = 0;                  // in the flat arrays, in elements
  Tensor master;                       // [rows, cols] f32
  Tensor gradient;                     // [rows, cols] f32; none for inference and where it is frozen
  Tensor compute;                      // what products read: the master itself, or its copy
  Tensor copy;                         // [rows, cols]: the master rounded to the compute type, where that is not f32
  Tensor first_moment, second_moment;  // as the gradient; no second one where Muon updates

  int64_t count() const { return spec.rows * spec.cols; }
};

class ParameterStore {
 public:
  enum class Purpose : uint8_t { training, inference };
  // Which moments training keeps: two of every parameter, or only the first of hidden matrices (Muon).
  enum class Moments : uint8_t { two, one_of_hidden };
  // Which parameters have fp32 masters: all, or all but hidden matrices, which live in bf16 alone and are rounded by
  // chance (ops/optimizer/stochastic_rounding.h). These have no `master`; read() and write() know where their numbers are.
  enum class Masters : uint8_t { all, not_of_hidden };

  Parameter* add(ParameterSpec spec);
  Parameter* find(std::string_view name) const;                                       // nullptr if there is none
  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }  // in the order of add()
  const std::vector<Parameter*>& flat_order() const { return order_; }                // in memory

  // Gives every parameter its memory. `order` lists parameters in the order their gradients complete; those not listed
  // follow, and last the frozen ones. Compute copies exist when compute_type is not f32.
  void allocate(Device& device, const std::vector<Parameter*>& order, DType compute_type, Purpose purpose,
                Moments moments = Moments::two, Masters masters = Masters::all, bool with_moments = true);
  // Where that was done without them: those of the elements [begin, end) of the flat arrays, which are all that one of several
  // processes updates. The others' moments have their places, where there is no memory.
  void allocate_moments(int64_t begin, int64_t end);
  // Draws depend on the seed and the name alone; compute copies are ops/optimizer/parameters.h's business.
  void initialise(uint64_t seed);
  void initialise(const Parameter& parameter, uint64_t seed);

  // The numbers of a parameter from `first` on, as f32 whatever they are kept in.
  void read(const Parameter& parameter, int64_t first, std::span<float> numbers) const;
  void write(const Parameter& parameter, int64_t first, std::span<const float> numbers) const;

  int64_t count() const;                              // parameters
  int64_t trained_count() const;                      // those that are not frozen
  int64_t flat_count() const { return flat_count_; }  // elements of a flat array, alignment included
  bool has_all_masters() const { return masters_ == Masters::all; }
  bool is_training() const { return purpose_ == Purpose::training; }
  DType compute_type() const { return compute_type_; }
  Device& device() const { return *device_; }

  // The flat arrays, [1, flat_count]; those of the trained parameters, which come first, are as long as these.
  Tensor flat_master() const;  // [1, elements of the parameters that have one], in the same order
  Tensor flat_gradient() const;
  Tensor flat_first_moment() const;
  Tensor flat_second_moment() const;  // [1, elements of the parameters that have one], in the same order
  Tensor flat_copy() const;           // of the compute type; none where that is f32

  // Where in a flat array of some parameters' numbers those of the element at this place of the others are; if it is of a
  // parameter that has none there, those of the next that has.
  int64_t place_of(int64_t element, const Tensor& some, Tensor Parameter::*of_parameter) const;

  // Bytes allocate() would take.
  struct Bytes {
    int64_t masters = 0, copies = 0, gradients = 0, moments = 0;
    int64_t total() const { return masters + copies + gradients + moments; }
  };
  Bytes byte_parts(DType compute_type, Purpose purpose, Moments moments = Moments::two,
                   Masters masters = Masters::all) const;
  int64_t bytes(DType compute_type, Purpose purpose, Moments moments = Moments::two,
                Masters masters = Masters::all) const {
    return byte_parts(compute_type, purpose, moments, masters).total();
  }

 private:
  Device* device_ = nullptr;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string_view, Parameter*> by_name_;
  std::vector<Parameter*> order_;
  int64_t flat_count_ = 0, trained_flat_count_ = 0, second_moment_count_ = 0, master_count_ = 0;
  std::vector<int64_t> second_moment_offsets_;  // of each of order_, in their array
  Moments moments_ = Moments::two;
  Masters masters_ = Masters::all;
  DType compute_type_ = DType::f32;
  Purpose purpose_ = Purpose::training;
  Buffer master_, gradient_, first_moment_, second_moment_, copy_;
  int64_t first_moment_begin_ = 0, second_moment_begin_ = 0;  // of what these have
};

}  // namespace brisk
