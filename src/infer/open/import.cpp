#include "infer/open/import.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fine_tuned.h"
#include "checkpoint/run_directory.h"
#include "checkpoint/run_files.h"
#include "infer/open/label_file.h"
#include "infer/open/model_source.h"
#include "infer/open/trained_model.h"

namespace brisk {

ImportResult import_model(const std::string& path, const std::string& tokenizer_path, const std::string& run_path,
                          NonFinite nonfinite) {
  const auto model = open_trained_model(path, tokenizer_path, false, "cpu", nonfinite);
  Job job = model->job;
  job.output = run_path;
  resolve_defaults(job);
  RunDirectory run = RunDirectory::open(run_path, RunDirectory::Mode::import);
  UnfinishedFolder unfinished(run.path());
  if (model->tokenizer) save_tokenizer_folder(*model->tokenizer, run.path());
  if (model->target_tokenizer) model->target_tokenizer->save(run.path() + kTargetTokenizerFile);
  save_frozen(run.path(), model->store);  // what no training changes: sinusoids, a bias that is kept as it is
  if (model->labels.count() > 0) write_labels(run.path(), model->labels);
  CheckpointState state;
  state.run_files = checksums_of_run_files(run.path());
  const SaveResult saved = save_checkpoint(run.path(), model->store, state);
  if (!saved.ok()) {
    remove_checkpoints_after(run.path(), -1);  // it may be there, and only its folder could not be flushed
    for (const char* name :
         {"/tokenizer.json", "/tokenizer_config.json", "/vocab.txt", kTargetTokenizerFile, kLabelFile}) {
      remove_file(run.path() + name);
    }
    remove_file(run.path() + "/" + kFrozenFile);
    unfinished.finish();
    run.abandon();
    throw UserError(saved.problem);
  }
  // What a run's end says, so that its report and a comparison do not wait for one.
  const nlohmann::ordered_json summary = {{"ended", "imported"}, {"parameters", model->store.count()}};
  write_file_atomically(run.path() + "/summary.json", summary.dump(2) + "\n");
  write_file_atomically(run.job_path(), job_to_json_text(job));  // last: it makes the folder a run
  unfinished.finish();
  return {model->kind, job, !has_no_head(job), model->store.count(), saved.bytes};
}

}  // namespace brisk
