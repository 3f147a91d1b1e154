// The style sheet of the pages, and the script that shows a chart's values under the pointer. The pages work without
// the script.
//
//   html += fmt::format("<style>{}</style> ... <script>{}</script>", kPageStyle, kPageScript);
#pragma once

#include <string_view>

namespace brisk {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace brisk
