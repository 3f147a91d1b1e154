// Strings that came from a file, a folder or another program, made fit for messages, tables and terminals: characters that
// a terminal obeys, that change the direction of the text or that are no UTF-8 are written as escapes, and a long string is
// cut, its size told.
//
//   problems.push_back(fmt::format("{}: {} appears twice", path, in_quotes(name)));   // "a\x1b[2Jb", "aaaa... (10.0 MiB)"
//
// say(), warn() and user_error() (base/error.h) do this with every string that stands in quotation marks, and escape the
// others; so does UserError, and tables with their cells.
//
// Of a whole message, without_controls(), and of one that comes in pieces, ControlFilter (brisk/log.h).
#pragma once

#include <brisk/log.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace brisk {

// On one line, in at most so many columns. Of what it made it makes the same again.
std::string printable(std::string_view text, int64_t columns = 80);

std::string in_quotes(std::string_view text, int64_t columns = 80);  // the same, between quotation marks

}  // namespace brisk
