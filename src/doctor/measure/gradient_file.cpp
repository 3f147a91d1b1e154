#include "doctor/measure/gradient_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

constexpr size_t kPiece = 1 << 16;  // numbers

struct Header {
  double loss = 0;
  int64_t tensors = 0;
};
struct TensorHeader {
  int64_t name_bytes = 0, count = 0;
};

// Reads a file that write_gradient() made in this process or in a child of it.
class GradientReader {
 public:
  explicit GradientReader(const std::string& path) : file_(path) { take(&header, sizeof header); }
  std::string name(const TensorHeader& tensor) {
    std::string text(static_cast<size_t>(tensor.name_bytes), '\0');
    take(text.data(), text.size());
    return text;
  }
  void take(void* to, size_t size) {
    BRISK_CHECK(at_ + size <= static_cast<size_t>(file_.size()), "a gradient file ends at {} of {}", at_ + size,
                file_.size());
    std::memcpy(to, file_.data() + at_, size);
    at_ += size;
  }

  Header header;

 private:
  MappedFile file_;
  size_t at_ = 0;
};

}  // namespace

void write_gradient(const std::string& path, double loss, double scaling, const ParameterStore& store) {
  AtomicFile file(path);
  Header header{.loss = loss};
  for (const auto& parameter : store.all()) header.tensors += parameter->gradient ? 1 : 0;
  file.write(&header, sizeof header);
  std::vector<float> numbers(kPiece);
  for (const auto& parameter : store.all()) {
    if (!parameter->gradient) continue;
    const std::string& name = parameter->spec.name;
    const TensorHeader tensor{std::ssize(name), parameter->count()};
    file.write(&tensor, sizeof tensor);
    file.write(name);
    for (int64_t first = 0; first < tensor.count; first += std::ssize(numbers)) {
      const int64_t count = std::min<int64_t>(std::ssize(numbers), tensor.count - first);
      store.device().copy_out(numbers.data(), parameter->gradient.f32() + first, count * size_of(DType::f32));
      if (scaling != 1) {
        for (float& number : numbers) number = static_cast<float>(number / scaling);
      }
      file.write(numbers.data(), count * size_of(DType::f32));
    }
  }
  file.commit();
}

StepProof compare_gradients(const std::string& path, const std::string& other, double allowed) {
  constexpr double kOfOneTensor = 10;  // times what is allowed of the whole gradient
  GradientReader a(path), b(other);
  StepProof proof{.measured = true,
                  .same_bits = a.header.loss == b.header.loss && a.header.tensors == b.header.tensors,
                  .loss = a.header.loss,
                  .other_loss = b.header.loss,
                  .allowed = allowed,
                  .tensors = a.header.tensors};
  if (a.header.tensors != b.header.tensors) return proof;
  double squares = 0, different_squares = 0, largest = 0;
  std::vector<float> ours, theirs;
  std::vector<std::pair<std::string, std::pair<double, double>>> tensors;  // name, norm, norm of the difference
  for (int64_t i = 0; i < a.header.tensors; ++i) {
    TensorHeader one, two;
    a.take(&one, sizeof one);
    b.take(&two, sizeof two);
    const std::string name = a.name(one);
    if (b.name(two) != name || one.count != two.count) {
      proof.same_bits = false;
      proof.worst_tensor = name;
      return proof;
    }
    ours.resize(static_cast<size_t>(one.count));
    theirs.resize(ours.size());
    a.take(ours.data(), ours.size() * sizeof(float));
    b.take(theirs.data(), theirs.size() * sizeof(float));
    proof.same_bits = proof.same_bits && std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(float)) == 0;
    double norm = 0, difference = 0;
    for (size_t at = 0; at < ours.size(); ++at) {
      const double x = ours[at], d = x - theirs[at];
      norm += x * x;
      difference += d * d;
    }
    squares += norm;
    different_squares += difference;
    tensors.emplace_back(name, std::pair(std::sqrt(norm), std::sqrt(difference)));
    largest = std::max(largest, std::sqrt(norm));
  }
  // A tensor whose gradient is nearly nothing beside the largest has no relative difference that means anything.
  constexpr double kNegligible = 1e-4;
  for (const auto& [name, norms] : tensors) {
    const double relative = norms.second / std::max(norms.first, kNegligible * largest);
    if (std::isnan(relative) || relative > proof.worst_difference) {
      proof.worst_difference = relative;
      proof.worst_tensor = name;
    }
  }
  proof.difference = squares > 0 ? std::sqrt(different_squares / squares) : std::sqrt(different_squares);
  const double loss_difference = std::abs(proof.loss - proof.other_loss) / std::max(1e-6, std::abs(proof.loss));
  proof.holds = proof.same_bits || (proof.difference <= allowed && proof.worst_difference <= kOfOneTensor * allowed &&
                                    loss_difference <= allowed);
  return proof;
}

}  // namespace brisk
