// Runs a fuzzer without libFuzzer, as a test: the committed inputs, then so many changes to them (mutations.h), the same
// ones in the same order each time.
//
//   fuzz_gguf tests/fuzz/corpus/gguf 5000        # all files of a folder, then 5000 changes to them
//   fuzz_gguf finding-fuzz_gguf                  # one input alone
//
// An input that ends the program is left in finding-<program> in the current folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include "base/files/files.h"
#include "base/runtime.h"
#include "fuzz/mutations.h"
#ifdef BRISK_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#ifdef BRISK_SANITIZED
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=256:hard_rss_limit_mb=2048"; }
#endif

namespace {

constexpr int kMostSeconds = 5;                  // of processor time, for one input
constexpr rlim_t kMostMemory = rlim_t{1} << 30;  // a sanitizer needs terabytes of addresses, and limits itself
char finding_path[256];
const uint8_t* input_data = nullptr;
size_t input_size = 0;

void save_input() {
  if (input_data == nullptr) return;  // a leak is found at the end, when no input is at work
  const int file = ::open(finding_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ::write(file, input_data, input_size) < 0) return;
  ::close(file);
  for (const char* words : {"the input is in ", static_cast<const char*>(finding_path), "\n"}) {
    if (::write(STDERR_FILENO, words, std::strlen(words)) < 0) return;
  }
}

void on_signal(int number) {
  const char* words = number == SIGVTALRM ? "more than 5 s for one input\n" : "a signal ended it\n";
  if (::write(STDERR_FILENO, words, std::strlen(words)) >= 0) save_input();
  ::_exit(1);
}

void watch_for_findings() {
  static char stack[1 << 16];  // a stack that is full cannot hold the handler
  const stack_t other_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  ::sigaltstack(&other_stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGVTALRM, SIGABRT}) ::sigaction(number, &action, nullptr);
#ifdef BRISK_SANITIZED
  __sanitizer_set_death_callback(save_input);
#else
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(number, &action, nullptr);
  const rlimit limit = {kMostMemory, kMostMemory};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

bool run(const std::string& input) {
  // Memory of exactly this size: a byte behind it is not the input's.
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::memcpy(copy.get(), input.data(), input.size());
  input_data = copy.get();
  input_size = input.size();
  const itimerval limit = {{0, 0}, {kMostSeconds, 0}};
  ::setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  try {
    LLVMFuzzerTestOneInput(copy.get(), input.size());
    input_data = nullptr;
    return true;
  } catch (const std::exception& error) {
    fmt::print(stderr, "an exception that is no UserError: {}\n", error.what());
  }
  save_input();
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  brisk::Runtime runtime;
  const brisk::RuntimeScope scope(runtime);
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER|FILE [MUTATIONS]\n", argv[0]);
    return 2;
  }
  const std::string program = argv[0], path = argv[1];
  fmt::format_to_n(finding_path, sizeof(finding_path) - 1, "finding-{}", program.substr(program.rfind('/') + 1));
  std::vector<std::string> seeds;
  if (brisk::is_directory(path)) {
    for (const std::string& name : brisk::names_in(path)) seeds.push_back(brisk::read_file(path + "/" + name));
  } else {
    seeds.push_back(brisk::read_file(path));
  }
  if (seeds.empty()) {
    fmt::print(stderr, "{}: no inputs there\n", path);
    return 2;
  }
  watch_for_findings();
  for (const std::string& seed : seeds) {
    if (!run(seed)) return 1;
  }
  const int64_t mutations = argc > 2 ? std::stoll(argv[2]) : 0;
  brisk::fuzz::Mutator mutator(seeds, 1);
  for (int64_t i = 0; i < mutations; ++i) {
    if (!run(mutator.next())) return 1;
  }
  fmt::print("{} inputs and {} changes of them, no finding\n", seeds.size(), mutations);
  return 0;
}
