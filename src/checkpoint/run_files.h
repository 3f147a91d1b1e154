// The files of a run that its weights mean nothing without: the tokenizer and, of a classifier, the names of its classes.
// Every checkpoint has their checksums, so that one which was swapped or damaged is not used in silence.
//
//   state.run_files = checksums_of_run_files(run);               // {"tokenizer.json": "c0ffee...", ...}
//   check_run_file(run, "labels.json", state.run_files, "copy it back");
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace brisk {

using FileChecksums = std::map<std::string, std::string>;  // by name in the run's folder

FileChecksums checksums_of_run_files(const std::string& run);

// UserError where the run's file `name` is missing or not the one of the checkpoint; `fix` ends the message. Nothing where
// the checkpoint knows of no such file, as those of an earlier brisk.
void check_run_file(const std::string& run, const std::string& name, const FileChecksums& expected,
                    std::string_view fix);

}  // namespace brisk
