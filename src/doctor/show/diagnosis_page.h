// A diagnosis as one HTML page to show to others: no network, no library, works without scripts (report/page/html.h).
//
//   write_file_atomically("report.html", diagnosis_page(diagnosis));
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace brisk {

std::string diagnosis_page(const Diagnosis& diagnosis);

}  // namespace brisk
