#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "job/tables.h"

namespace brisk {

#define BRISK_ARCHITECTURE(name, ...) const Architecture& name##_architecture();
#include "job/architectures.def"
#undef BRISK_ARCHITECTURE

std::span<const Architecture* const> architectures() {
  static const Architecture* const table[] = {
#define BRISK_ARCHITECTURE(name, ...) &name##_architecture(),
#include "job/architectures.def"
#undef BRISK_ARCHITECTURE
  };
  return table;
}

const Architecture& architecture_of(const ModelOptions& model) {
  const int place = architecture_with(model.type);
  BRISK_CHECK(place >= 0, "no architecture has the model.type {}", model.type);
  return *architectures()[static_cast<size_t>(place)];
}

}  // namespace brisk
