// A 64-bit checksum of a file: fast enough to take of every checkpoint, and different when any bit is.
//
//   const std::string sum = checksum_of_file(path);   // "c0ffee..." 16 digits, on all threads of the ThreadPool
//
// Not against forgery: it tells what a disk or a memory chip changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace brisk {

uint64_t checksum(std::span<const std::byte> bytes);  // the same for any number of threads
std::string checksum_of_file(const std::string& path);

}  // namespace brisk
