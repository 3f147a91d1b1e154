#include "ops/gemm/gemm_library.h"

#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "ops/element.h"

#if defined(BRISK_HAVE_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>
#endif
#if defined(BRISK_HAVE_BLAS)
#include <cblas.h>
#endif

namespace brisk::cpu {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"own", "onednn", "blas", "reference"};

GemmImplementation implementation_named(std::string_view forced) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    const GemmImplementation implementation = static_cast<GemmImplementation>(i);
    if (kNames[i] != forced) continue;
    if (!has_gemm_implementation(implementation)) {
      user_error(
          "BRISK_GEMM={}: this program was built without it; leave BRISK_GEMM unset, or build where its development "
          "package is installed",
          forced);
    }
    return implementation;
  }
  user_error("BRISK_GEMM={}: unknown; use one of own, onednn, blas, reference", forced);
}

// [rows, cols] as floats in plain order, rounded to bf16 where the arithmetic is bf16.
const float* as_floats(const GemmOperand& x, int64_t rows, int64_t cols, Arithmetic arithmetic,
                       std::vector<float>& copy) {
  if (x.type == DType::f32 && !x.transposed && x.stride == cols && arithmetic == Arithmetic::f32) {
    return static_cast<const float*>(x.data);
  }
  copy.resize(static_cast<size_t>(rows * cols));
  thread_pool().for_range(rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const int64_t at = x.transposed ? j * x.stride + i : i * x.stride + j;
        float value = x.type == DType::bf16 ? to_float(static_cast<const bf16_t*>(x.data)[at])
                                            : static_cast<const float*>(x.data)[at];
        if (arithmetic == Arithmetic::bf16) value = to_float(to_bf16(value));
        copy[static_cast<size_t>(i * cols + j)] = value;
      }
    }
  });
  return copy.data();
}

void finish_row(const float* acc, int64_t row, int64_t n, const GemmEpilogue& epilogue) {
  const Dropout& dropout = epilogue.dropout;
  const uint32_t key = dropout.active() ? dropout.row_key(epilogue.rows, row) : 0;
  for (int64_t j = 0; j < n; ++j) {
    float x = acc[j];
    if (epilogue.bias != nullptr) x += epilogue.bias[j];
    if (epilogue.before) set_element(epilogue.before, row, j, x);
    x = activate(epilogue.activation, x);
    if (dropout.active()) x = dropout.keeps(key, j) ? x * dropout.scale() : 0.0f;
    if (epilogue.residual) x += element(epilogue.residual, row, j);
    if (epilogue.adds) x += element(epilogue.c, row, j);
    set_element(epilogue.c, row, j, x);
  }
}

// Row by row of A: a row of C is a sum of rows of B, which any compiler turns into vector code.
void gemm_reference(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
                    const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  std::vector<float> a_copy, b_copy;
  const float* a_floats = as_floats(a, m, k, arithmetic, a_copy);
  const float* b_floats = as_floats(b, k, n, arithmetic, b_copy);
  thread_pool().for_range(m, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<float> acc(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(acc.begin(), acc.end(), 0.0f);
      for (int64_t p = 0; p < k; ++p) {
        const float x = a_floats[i * k + p];
        const float* b_row = b_floats + p * n;
        for (int64_t j = 0; j < n; ++j) acc[static_cast<size_t>(j)] += x * b_row[j];
      }
      finish_row(acc.data(), i, n, epilogue);
    }
  });
}

#if defined(BRISK_HAVE_ONEDNN) || defined(BRISK_HAVE_BLAS)
// Libraries get the product alone, into a float matrix of their own if there is an epilogue; ours comes after it.
template <typename Multiply>
void gemm_with(int64_t m, int64_t n, const GemmEpilogue& epilogue, const Multiply& multiply) {
  const bool plain = epilogue.c.type == DType::f32 && epilogue.bias == nullptr &&
                     epilogue.activation == Activation::none && !epilogue.before && !epilogue.dropout.active() &&
                     !epilogue.residual;
  if (plain) return multiply(epilogue.c.f32(), epilogue.c.stride, epilogue.adds);
  static thread_local std::vector<float> kept;
  std::vector<float>& acc = kept;  // this thread's, for the pool's threads too
  acc.resize(static_cast<size_t>(m * n));
  multiply(acc.data(), n, false);
  thread_pool().for_range(m, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) finish_row(acc.data() + i * n, i, n, epilogue);
  });
}

#endif

#if defined(BRISK_HAVE_BLAS)
void gemm_blas(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
               const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  std::vector<float> a_copy, b_copy;
  GemmOperand a_floats = a, b_floats = b;
  if (a.type != DType::f32 || arithmetic != Arithmetic::f32)
    a_floats = {as_floats(a, m, k, arithmetic, a_copy), DType::f32, k, false};
  if (b.type != DType::f32 || arithmetic != Arithmetic::f32)
    b_floats = {as_floats(b, k, n, arithmetic, b_copy), DType::f32, n, false};
  gemm_with(m, n, epilogue, [&](float* c, int64_t stride, bool adds) {
    cblas_sgemm(CblasRowMajor, a_floats.transposed ? CblasTrans : CblasNoTrans,
                b_floats.transposed ? CblasTrans : CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                static_cast<int>(k), 1.0f, static_cast<const float*>(a_floats.data), static_cast<int>(a_floats.stride),
                static_cast<const float*>(b_floats.data), static_cast<int>(b_floats.stride), adds ? 1.0f : 0.0f, c,
                static_cast<int>(stride));
  });
}
#endif

#if defined(BRISK_HAVE_ONEDNN)
void gemm_onednn(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
                 const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  using dnnl::memory;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static thread_local dnnl::stream stream(engine);
  const DType wanted = arithmetic == Arithmetic::f32 ? DType::f32 : DType::bf16;
  std::vector<float> a_copy, b_copy;
  const bool converts = a.type != wanted || b.type != wanted;
  const auto dnnl_type = [&](DType type) {
    return type == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  };
  const auto described = [&](const GemmOperand& x, int64_t rows, int64_t cols) {
    const memory::dims strides = x.transposed ? memory::dims{1, x.stride} : memory::dims{x.stride, 1};
    return memory::desc({rows, cols}, dnnl_type(x.type), strides);
  };
  GemmOperand left = a, right = b;
  if (converts) {
    left = {as_floats(a, m, k, arithmetic, a_copy), DType::f32, k, false};
    right = {as_floats(b, k, n, arithmetic, b_copy), DType::f32, n, false};
  }
  gemm_with(m, n, epilogue, [&](float* c, int64_t stride, bool adds) {
    const memory::desc a_desc = described(left, m, k), b_desc = described(right, k, n),
                       c_desc({m, n}, memory::data_type::f32, memory::dims{stride, 1});
    dnnl::primitive_attr attributes;
    if (adds) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul product(
        dnnl::matmul::primitive_desc(dnnl::matmul::desc(a_desc, b_desc, c_desc), attributes, engine));
    memory a_memory(a_desc, engine, const_cast<void*>(left.data)),
        b_memory(b_desc, engine, const_cast<void*>(right.data)), c_memory(c_desc, engine, c);
    product.execute(stream, {{DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, b_memory}, {DNNL_ARG_DST, c_memory}});
    stream.wait();
  });
}
#endif

}  // namespace

GemmImplementation gemm_implementation() {
  const std::string_view forced = Runtime::current().environment("BRISK_GEMM");
  return forced.empty() ? GemmImplementation::own : implementation_named(forced);
}

std::string_view gemm_implementation_name(GemmImplementation implementation) {
  return kNames[static_cast<size_t>(implementation)];
}

bool has_gemm_implementation(GemmImplementation implementation) {
#if defined(BRISK_HAVE_ONEDNN)
  if (implementation == GemmImplementation::onednn) return true;
#endif
#if defined(BRISK_HAVE_BLAS)
  if (implementation == GemmImplementation::blas) return true;
#endif
  return implementation == GemmImplementation::own || implementation == GemmImplementation::reference;
}

void gemm_by([[maybe_unused]] GemmImplementation implementation, int64_t m, int64_t n, int64_t k, const GemmOperand& a,
             const GemmOperand& b, const GemmEpilogue& epilogue, Arithmetic arithmetic) {
#if defined(BRISK_HAVE_ONEDNN)
  if (implementation == GemmImplementation::onednn && k > 0) return gemm_onednn(m, n, k, a, b, epilogue, arithmetic);
#endif
#if defined(BRISK_HAVE_BLAS)
  if ((implementation == GemmImplementation::blas || implementation == GemmImplementation::own) && k > 0) {
    return gemm_blas(m, n, k, a, b, epilogue, arithmetic);
  }
#endif
  gemm_reference(m, n, k, a, b, epilogue, arithmetic);
}

}  // namespace brisk::cpu
