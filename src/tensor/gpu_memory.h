// Memory of the GPU that counts as the process's (Device::memory), for those who do not hold a Buffer.
//
//   void* memory = cuda::allocate_or_null(bytes);
//   if (memory == nullptr) cuda::no_memory(bytes, "allocating the workspace of an op");
//   cuda::release(memory, bytes);
#pragma once

#include <cstdint>

namespace brisk::cuda {

void* allocate_or_null(int64_t bytes);  // null, and the error forgotten, where there is none
void release(void* data, int64_t bytes);
// Throws a UserError that says how much is free, and where the rest went.
[[noreturn]] void no_memory(int64_t bytes, const char* what);

}  // namespace brisk::cuda
