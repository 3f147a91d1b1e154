// Memory that is refused. A large allocation throws std::bad_alloc, which main() reports and some code does without. Where even
// a small one fails there is no tidying up: libraries would be left half-built (nlohmann's operator[] crashes then), their
// destructors allocate, and so would any message. The program ends at once with that message and kExitUserError, as if it had
// been killed; the files of a run are whole at any moment.
#pragma once

namespace brisk {

constexpr const char* kOutOfMemory =
    "brisk: out of memory; use a smaller model or a smaller training.micro_batch_tokens";

// Also where std::bad_alloc is thrown in what must not throw.
void handle_memory_faults();

}  // namespace brisk
