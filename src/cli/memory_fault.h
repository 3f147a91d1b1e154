// Memory that is refused. A large allocation throws std::bad_alloc, which main() reports and some code does without. Where even
// a small one fails there is no tidying up: libraries would be left half-built (nlohmann's operator[] crashes then), their
// destructors allocate, and so would any message. The program ends at once with that message and kExitUserError, as if it had
// been killed; the files of a run are whole at any moment.
#pragma once

#include <string_view>

namespace brisk {

// "brisk: out of memory", and what to do about it in this command: not every one has a model that could be smaller.
const char* out_of_memory();
void set_memory_advice(std::string_view command);

// Also where std::bad_alloc is thrown in what must not throw.
void handle_memory_faults();

}  // namespace brisk
