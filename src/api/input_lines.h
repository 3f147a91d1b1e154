// The lines of a file or a pipe as they come, each a text to be answered.
//
//   for_each_input_line(read, "standard input", [&](std::string_view line) { ... }, [&] { answer_what_waits(); });
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace brisk {

// Returns the number of bytes that are available, at most `size`; 0 at the end.
using ReadBytes = std::function<size_t(char* out, size_t size)>;

// `on_block` follows the lines of each block of bytes: the next one may take long. Lines end with LF or CR LF. A line of more
// than 64 MiB is a UserError that names `name` and the line.
void for_each_input_line(const ReadBytes& read, const std::string& name,
                         const std::function<void(std::string_view line)>& on_line,
                         const std::function<void()>& on_block);

}  // namespace brisk
