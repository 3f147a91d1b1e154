// How the pages look, and the few lines of script that show a chart's values under the pointer. Without the script
// everything but that works.
//
//   html += fmt::format("<style>{}</style> ... <script>{}</script>", kPageStyle, kPageScript);
#pragma once

#include <string_view>

namespace brisk {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace brisk
