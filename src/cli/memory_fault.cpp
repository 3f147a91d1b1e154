#include "cli/memory_fault.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "cli/command.h"

namespace brisk {

namespace {

std::terminate_handler standard_terminate = nullptr;
const char* message = "brisk: out of memory; end other programs, or use a machine with more of it";

[[noreturn]] void end_without_memory() {
  for (const std::string_view text : {std::string_view("\n"), std::string_view(message), std::string_view("\n")}) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    static_cast<void>(written);
  }
  ::_exit(kExitUserError);
}

void on_terminate() {
  if (std::current_exception()) {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      end_without_memory();
    } catch (...) {
    }
  }
  standard_terminate();
}

}  // namespace

const char* out_of_memory() { return message; }

void set_memory_advice(std::string_view command) {
  if (command == "train" || command == "doctor" || command == "bench")
    message = "brisk: out of memory; use a smaller model or a smaller training.micro_batch_tokens";
}

void handle_memory_faults() { standard_terminate = std::set_terminate(on_terminate); }

}  // namespace brisk

// (The standard operator delete frees what malloc gave. Sanitizers have an operator of their own.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(std::size_t size) {
  constexpr std::size_t kSmall = 1 << 16;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr) return memory;
  if (size < kSmall) brisk::end_without_memory();
  throw std::bad_alloc();
}
#endif
