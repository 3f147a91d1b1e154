// Scripts that complete brisk's command line in a shell, generated from the declared commands and options.
//
//   fmt::print("{}", bash_completion(describe_command(app)));
//   eval "$(brisk completion bash)"       # in the shell
#pragma once

#include <string>
#include <string_view>

#include "cli/shell/command_tree.h"

namespace brisk {

std::string bash_completion(const Command& brisk);
std::string zsh_completion(const Command& brisk);
std::string fish_completion(const Command& brisk);

// 'in single quotes', as all three shells read it.
std::string shell_quoted(std::string_view text);

// "brisk tokenizer train" is _brisk_tokenizer_train.
std::string completion_function_name(const Command& command);

}  // namespace brisk
