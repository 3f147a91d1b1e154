// A safetensors file as it is, and once more with the length of its header set right: a mutation that makes the header
// longer or shorter would otherwise be refused for that alone.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "hub/formats/safetensors.h"

using namespace brisk;

namespace {

void read_all(std::span<const std::byte> content) {
  fuzz::unless_refused([&] {
    const SafetensorsFile file("model.safetensors", content);
    int64_t bytes = 0;
    for (const SafetensorsEntry& entry : file.entries()) {
      fuzz::require(file.find(entry.name) == &entry, "an entry is found by its name");
      fuzz::require(entry.count() * size_of(entry.type) == entry.bytes, "the bytes are those of the elements");
      fuzz::sum_of_bytes(entry.data, entry.bytes);
      bytes += entry.bytes;
    }
    uint64_t header = 0;
    std::memcpy(&header, content.data(), sizeof(header));
    fuzz::require(bytes + static_cast<int64_t>(8 + header) == std::ssize(content), "every byte is accounted for");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_all(fuzz::bytes_of(data, size));
  const std::string_view content = fuzz::text_of(data, size);
  const size_t last = content.substr(0, content.find('\0', 8)).rfind('}');
  if (last == std::string_view::npos || last < 8) return 0;
  std::vector<std::byte> framed(size);
  std::memcpy(framed.data(), data, size);
  const uint64_t length = last + 1 - 8;
  std::memcpy(framed.data(), &length, sizeof(length));
  read_all(framed);
  return 0;
}
