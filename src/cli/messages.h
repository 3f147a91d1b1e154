// How commands speak: lines of the log, numbers for people, and errors of the command line.
//
//   say("{} tokens in {}", count, format_duration(seconds));
//   user_error("--pair: {} classifies single texts; remove it", run);
#pragma once

#include "base/error.h"              // IWYU pragma: export
#include "base/files/files.h"        // IWYU pragma: export (explain_errno)
#include "base/parse_json.h"         // IWYU pragma: export
#include "base/terminal/terminal.h"  // IWYU pragma: export
#include "base/text/plural.h"        // IWYU pragma: export
#include "base/text/printable.h"     // IWYU pragma: export
