// How texts are translated, for the commands that do.
#pragma once

#include <brisk/model.h>

namespace CLI {
class App;
}

namespace brisk {

// --beam, --length-penalty, --early-stopping, --max-tokens
void add_translation_options(CLI::App& command, TranslateOptions& options);

}  // namespace brisk
