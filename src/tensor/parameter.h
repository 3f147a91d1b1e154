// A Parameter is an fp32 master, a slice of the flat gradient, optimizer state, and, in bf16, a compute copy that the
// optimizer's pass rewrites. All of one kind lie in one flat array, in the order in which backward completes the
// gradients, so that a reduction over machines can start early.
//
//   ParameterStore store;
//   Parameter* w = store.add({.name = "blocks.0.qkv.weight", .rows = 3 * D, .cols = D, .decays = true});
//   store.allocate(cpu_device(), order, DType::bf16, ParameterStore::Purpose::training);
//   store.initialise(seed);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/device.h"
#include "tensor/tensor.h"

namespace brisk {

struct Initial {
  enum class Kind : uint8_t { zeros, ones, normal } kind = Kind::zeros;
  double deviation = 0;  // of normal
};

struct ParameterSpec {
  std::string name;
  int64_t rows = 1;
  int64_t cols = 1;
  bool decays = false;      // weight decay: matrices yes, norms and biases no
  bool multiplies = false;  // used as a matrix in products: has a compute copy in bf16
  Initial initial;
  std::vector<int64_t> parts;  // rows of the logical matrices stacked in it (Q, K, V apart); empty = one
  bool hidden = false;         // a matrix between hidden layers, not a table, head, norm or bias: what Muon updates
  bool trained = true;         // false: frozen; it has no gradient and no optimizer state
  bool adapter = false;        // one of the two factors of a low-rank change to another matrix
};

struct Parameter {
  ParameterSpec spec;
  int64_t index = 0;                   // in ParameterStore::all()
  int64_t offset = 0;                  // in the flat arrays, in elements
  Tensor master;                       // [rows, cols] f32
  Tensor gradient;                     // [rows, cols] f32; none for inference and where it is frozen
  Tensor compute;                      // what products read: the master itself, or its bf16 copy
  Tensor copy;                         // [rows, cols] bf16: the master rounded, where the compute type is bf16
  Tensor first_moment, second_moment;  // as the gradient; no second one where Muon updates

  int64_t count() const { return spec.rows * spec.cols; }
};

class ParameterStore {
 public:
  enum class Purpose : uint8_t { training, inference };
  // Which moments training keeps: two of every parameter, or only the first of hidden matrices (Muon).
  enum class Moments : uint8_t { two, one_of_hidden };

  Parameter* add(ParameterSpec spec);
  Parameter* find(std::string_view name) const;                                       // nullptr if there is none
  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }  // in the order of add()
  const std::vector<Parameter*>& flat_order() const { return order_; }                // in memory

  // Gives every parameter its memory. `order` lists parameters in the order their gradients complete; those not listed
  // follow, and last the frozen ones. Compute copies exist when compute_type is bf16.
  void allocate(Device& device, const std::vector<Parameter*>& order, DType compute_type, Purpose purpose,
                Moments moments = Moments::two);
  // Draws depend on the seed and the name alone; compute copies are ops/parameters.h's business.
  void initialise(uint64_t seed);

  int64_t count() const;                              // parameters
  int64_t trained_count() const;                      // those that are not frozen
  int64_t flat_count() const { return flat_count_; }  // elements of a flat array, alignment included
  bool is_training() const { return purpose_ == Purpose::training; }
  DType compute_type() const { return compute_type_; }
  Device& device() const { return *device_; }

  // The flat arrays, [1, flat_count]; those of the trained parameters, which come first, are as long as these.
  Tensor flat_master() const;
  Tensor flat_gradient() const;
  Tensor flat_first_moment() const;
  Tensor flat_second_moment() const;  // [1, elements of the parameters that have one], in the same order
  Tensor flat_copy() const;           // bf16, or none

  // Bytes allocate() would take.
  struct Bytes {
    int64_t masters = 0, copies = 0, gradients = 0, moments = 0;
    int64_t total() const { return masters + copies + gradients + moments; }
  };
  Bytes byte_parts(DType compute_type, Purpose purpose, Moments moments = Moments::two) const;
  int64_t bytes(DType compute_type, Purpose purpose, Moments moments = Moments::two) const {
    return byte_parts(compute_type, purpose, moments).total();
  }

 private:
  Device* device_ = nullptr;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Parameter*> order_;
  int64_t flat_count_ = 0, trained_flat_count_ = 0, second_moment_count_ = 0;
  DType compute_type_ = DType::f32;
  Purpose purpose_ = Purpose::training;
  Buffer master_, gradient_, first_moment_, second_moment_, copy_;
};

}  // namespace brisk
