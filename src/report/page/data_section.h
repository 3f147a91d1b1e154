// The part of a run's page that says what it was trained on: how much text, how long, what was cut, which classes.
//
//   body += data_section_html(run);   // nothing where the run has no statistics.json
#pragma once

#include "report/page/html.h"
#include "report/read/run_record.h"

namespace brisk {

Html data_section_html(const RunRecord& run);

}  // namespace brisk
