// `brisk report`: one run as a page.
//
//   write_file_atomically(path, report_page(read_run("runs/bible")));
#pragma once

#include <string>

#include "report/read/run_record.h"

namespace brisk {

std::string report_page(const RunRecord& run);

// What the page shows, for scripts: one JSON object.
std::string report_json(const RunRecord& run);

}  // namespace brisk
