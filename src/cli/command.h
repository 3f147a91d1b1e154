// The commands of brisk. Each adds itself to the command line; the callback of the one that was given runs and sets the
// exit code: 0 done, 1 internal error, 2 user error, 3 another rank is gone (comm/communicator.h), 130 interrupted after saving.
#pragma once

namespace CLI {
class App;
}

namespace brisk {

class Runtime;

constexpr int kExitDone = 0;
constexpr int kExitInternalError = 1;
constexpr int kExitUserError = 2;
constexpr int kExitInterrupted = 130;

void add_train_command(CLI::App& app, Runtime& runtime, int& exit_code);
void add_generate_command(CLI::App& app, Runtime& runtime);
void add_translate_command(CLI::App& app, Runtime& runtime);
void add_predict_command(CLI::App& app, Runtime& runtime);
void add_eval_command(CLI::App& app, Runtime& runtime);
void add_score_command(CLI::App& app, Runtime& runtime);
void add_doctor_command(CLI::App& app, Runtime& runtime, int& exit_code);
void add_launch_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, Runtime& runtime);
void add_report_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_tokenizer_command(CLI::App& app);
void add_machine_command(CLI::App& app, Runtime& runtime);
void add_bench_command(CLI::App& app, Runtime& runtime);
void add_job_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_manual_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_export_command(CLI::App& app, Runtime& runtime);

}  // namespace brisk
