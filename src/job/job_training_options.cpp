// The options of a job's batches, length, optimizer, schedule and number formats.
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

void declare_batches(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.max_length", training.max_length,
         "longest training sequence; longer documents are cut into several sequences, longer texts to classify "
         "are cut off; shorter ones are not padded",
         OnResume::fixed)
      .at_least(1)
      .at_most(1048576)
      .in("tokens")
      .also({"max_seq_len", "max_seq_length", "block_size", "seq_len", "seq_length", "sequence_length",
             "context_length", "model.max_position_embeddings", "model.n_positions", "model.n_ctx", "model.block_size",
             "model.max_seq_len", "model.max_length", "model.context_length", "data.max_length"})
      .smoke_test_at_most(64)
      .everywhere();
  all.emplace_back(
         "training.window_stride", training.window_stride,
         "tokens between the beginnings of two sequences of a document; less than max_length makes them overlap, so that "
         "tokens are trained on and evaluated more than once",
         OnResume::fixed)
      .at_least(1)
      .at_most(1048576)
      .automatic(0, "max_length: no overlap; with model.reference half of it")
      .in("tokens")
      .only_with(with_decoder(job, "a text is one sequence"))
      .smoke_test_value(0);
  all.emplace_back(
         "training.batch_size", training.batch_size,
         "sequences in a batch; an optimizer step has gradient_accumulation_steps of them; auto also turns on "
         "measure_micro_batch",
         OnResume::fixed)
      .at_least(1)
      .at_most(1048576)
      .automatic(0, "4096 / max_length, at least 1")
      .default_with(with_optimizer(job, "adamw"), 32)
      .default_with(with_encoder_task(job), 32)
      .default_with(with_type(job, "mu"), 8)
      .in("sequences")
      .also({"per_device_train_batch_size", "per_gpu_train_batch_size", "train_batch_size", "data.batch_size"})
      .smoke_test_at_most(8)
      .everywhere();
  all.emplace_back("training.gradient_accumulation_steps", training.gradient_accumulation_steps,
                   "batches in an optimizer step; equivalent to one batch that many times larger", OnResume::fixed)
      .at_least(1)
      .at_most(65536)
      .default_with(with_type(job, "mu"), 4)
      .in("batches")
      .also({"grad_accum_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accumulation_steps"})
      .smoke_test_at_most(2)
      .everywhere();
  all.emplace_back("training.drop_incomplete_accumulation", training.drop_incomplete_accumulation,
                   "leave out the last batches of an epoch where they are fewer than gradient_accumulation_steps; "
                   "otherwise they are a smaller optimizer step",
                   OnResume::fixed)
      .default_with(with_reference(job), true)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "training.padding", training.padding,
         "measures what padding costs: sequences are computed as long as the longest of their micro-batch (longest) or as "
         "max_length (max_length), with the same result up to rounding, never faster; padding is no target and no "
         "token, and evaluations have none",
         OnResume::fixed)
      .one_of({"none", "longest", "max_length"})
      .same_as("do_not_pad", "none")
      .same_as("false", "none")
      .same_as("true", "longest")
      .flag("pad_to_max_length", "max_length")
      .also({"data.padding"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.num_epochs", training.num_epochs, "number of passes over the training data",
                   OnResume::may_change)
      .at_least(1)
      .at_most(1e6)
      .automatic(0, "1, unless stop says how long")
      .default_with(with_type(job, "mu"), 3)
      .also({"num_train_epochs", "epochs", "n_epochs", "max_epochs"})
      .instead_of_fraction("for a part of an epoch write \"stop\": \"{}e\" in place of it")
      .smoke_test_value(1)
      .everywhere();
  all.emplace_back("training.max_steps", training.max_steps,
                   "stop after this many optimizer steps, whatever num_epochs says; 0: num_epochs decides",
                   OnResume::may_change)
      .at_least(0)
      .in("optimizer steps")
      .also({"max_iters", "train_steps", "num_train_steps", "total_steps", "max_train_steps", "num_training_steps"})
      .read_as(-1, 0)
      .smoke_test_value(kSmokeTestSteps)
      .everywhere();
  all.emplace_back(
         "training.stop", training.stop,
         "how long to train, in place of num_epochs and max_steps: `2e` epochs, `500u` optimizer steps, `10Mt` "
         "tokens (K, M, G), `30m` time (s, m, h) including start-up and evaluations, `auto`: as long as the Slurm "
         "allocation lets it; or --stop",
         OnResume::may_change)
      .automatic("num_epochs or max_steps decides")
      .also({"stop_after", ".stop"})
      .smoke_test_value("")
      .everywhere();
}

void declare_optimizer(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  const Condition muon = {"optimizer muon, without LoRA",
                          [&training] { return training.optimizer == "muon" && training.lora_rank == 0; }};
  all.emplace_back("training.optimizer", training.optimizer,
                   "optimizer: Muon for the weight matrices of the layers and AdamW for the rest (muon), or AdamW for "
                   "everything (adamw)",
                   OnResume::fixed)
      .one_of({"muon", "adamw"})
      .same_as("adamw_torch", "adamw")
      .same_as("adamw_torch_fused", "adamw")
      .same_as("adamw_apex_fused", "adamw")
      .same_as("adamw_hf", "adamw")
      .not_a_choice({"adam"}, "Adam is adamw with \"weight_decay\": 0")
      .default_with(with_encoder_task(job), "adamw")
      .default_with(with_type(job, "mu"), "adamw")
      .also({"optim"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.learning_rate", training.learning_rate,
                   "peak learning rate of the parameters that AdamW updates", OnResume::fixed)
      .above(0)
      .at_most(10)
      .automatic(
          0,
          "4e-3 with muon, 1e-3 with adamw or lora_rank, times sqrt(256 / d_model); a tenth of it with model.from "
          "unless lora_rank is given; classify 5e-5 with model.from, 5e-4 sqrt(256 / d_model) without; mlm 1e-4 "
          "and 1e-3 sqrt(256 / d_model)")
      .default_with(with_type(job, "mu"), 3e-4)
      .also({"lr", "max_lr", "peak_lr", "learning_rate_init"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "training.muon_learning_rate", training.muon_learning_rate,
         "peak learning rate of the weight matrices that Muon updates; the same value works for any model width",
         OnResume::fixed)
      .above(0)
      .at_most(10)
      .automatic(0, "0.01; a tenth of it with model.from")
      .used_with(muon)
      .also({"muon_lr", "matrix_lr"})
      .same_in_smoke_test();
  all.emplace_back("training.muon_momentum", training.muon_momentum, "momentum of Muon", OnResume::fixed)
      .at_least(0)
      .below(1)
      .used_with(muon)
      .same_in_smoke_test();
  all.emplace_back("training.weight_decay", training.weight_decay,
                   "weight decay of matrices; norms and biases have none", OnResume::fixed)
      .at_least(0)
      .at_most(10)
      .default_with(with_encoder_task(job), 0.01)
      .default_with(with_type(job, "mu"), 0.01)
      .also({"wd"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.beta1", training.beta1, "AdamW's decay rate of the mean gradient", OnResume::fixed)
      .at_least(0)
      .below(1)
      .also({"adam_beta1"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.beta2", training.beta2, "AdamW's decay rate of the mean squared gradient", OnResume::fixed)
      .at_least(0)
      .below(1)
      .default_with(with_encoder_task(job), 0.999)
      .default_with(with_type(job, "mu"), 0.999)
      .also({"adam_beta2"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.adam_epsilon", training.adam_epsilon,
                   "small constant in the denominator of AdamW's update, against division by zero", OnResume::fixed)
      .above(0)
      .at_most(1)
      .also({"adam_eps", "epsilon"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.max_grad_norm", training.max_grad_norm,
                   "gradients with a larger norm are scaled down to it (clipping); 0: never", OnResume::fixed)
      .at_least(0)
      .also({"grad_clip", "gradient_clip", "clip_grad_norm", "gradient_clip_val", "grad_norm_clip"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.label_smoothing", training.label_smoothing,
                   "label smoothing: fraction of each target's probability spread evenly over all tokens or classes",
                   OnResume::fixed)
      .at_least(0)
      .below(1)
      .default_with(with_encoder_decoder_task(job), 0.1)
      .also({"label_smoothing_factor"})
      .everywhere()
      .same_in_smoke_test();
}

void declare_schedule(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.lr_scheduler", training.lr_scheduler,
         "learning rate schedule after warm-up; wsd (warm-up, stable, decay) is constant, then falls linearly",
         OnResume::fixed)
      .one_of({"constant", "linear", "cosine", "wsd"})
      .same_as("constant_with_warmup", "constant")
      .same_as("warmup_stable_decay", "wsd")
      .not_a_choice({"polynomial"}, "the nearest is linear, a polynomial of power 1")
      .not_a_choice({"cosine_with_restarts", "cosine_with_min_lr", "cosine_warmup_with_min_lr"},
                    "the nearest is cosine, with min_learning_rate_ratio for its end")
      .not_a_choice({"inverse_sqrt"}, "the nearest is wsd")
      .not_a_choice({"reduce_lr_on_plateau"}, "schedules do not depend on evaluations; the nearest is linear")
      .default_with(with_optimizer(job, "adamw"), "cosine")
      .default_with(with_encoder_task(job), "linear")
      .also({"lr_scheduler_type", "scheduler", "lr_schedule"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.schedule_ratio", training.schedule_ratio,
                   "length of the schedule in lengths of the run: at 2 the run ends halfway through it, while the "
                   "learning rate is still high",
                   OnResume::fixed)
      .at_least(1)
      .at_most(65536)
      .automatic(0, "1: the schedule ends with the run; with model.reference gradient_accumulation_steps")
      .used_with({"lr_scheduler linear, cosine or wsd", [&training] { return training.lr_scheduler != "constant"; }})
      .same_in_smoke_test();
  all.emplace_back("training.decay_ratio", training.decay_ratio,
                   "fraction of all optimizer steps, at the end of the run, in which the learning rate falls",
                   OnResume::fixed)
      .above(0)
      .at_most(1)
      .used_with({"lr_scheduler wsd", [&training] { return training.lr_scheduler == "wsd"; }})
      .also({"decay_fraction", "cooldown_fraction", "cooldown_ratio"})
      .same_in_smoke_test();
  all.emplace_back("training.warmup_steps", training.warmup_steps,
                   "warm-up: optimizer steps in which the learning rate rises from zero to its peak", OnResume::fixed)
      .at_least(0)
      .automatic(-1, "warmup_ratio of all steps")
      .default_with(with_type(job, "mu"), 500)
      .instead_of_fraction("a fraction of all steps is \"warmup_ratio\": {}")
      .in("optimizer steps")
      .also({"warmup_iters", "num_warmup_steps", "warmup"})
      .smoke_test_at_most(kSmokeTestSteps / 4)
      .everywhere();
  all.emplace_back("training.warmup_ratio", training.warmup_ratio, "warm-up as a fraction of all optimizer steps",
                   OnResume::fixed)
      .at_least(0)
      .at_most(1)
      .default_with(with_encoder_task(job), 0.1)
      .used_with({"if warmup_steps is auto", [&training] { return training.warmup_steps < 0; }})
      .also({"warmup_fraction"})
      .same_in_smoke_test();
  all.emplace_back("training.min_learning_rate_ratio", training.min_learning_rate_ratio,
                   "learning rate at the end of the schedule, as a fraction of its peak", OnResume::fixed)
      .at_least(0)
      .at_most(1)
      .used_with({"lr_scheduler linear, cosine or wsd", [&training] { return training.lr_scheduler != "constant"; }})
      .also({"min_lr_ratio", "min_lr_rate"})
      .same_in_smoke_test();
}

void declare_number_formats(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.precision", training.precision,
         "number format of matrix products; weights, gradients and optimizer state stay fp32; auto measures and "
         "takes the fastest; tf32 and fp8 need a GPU (docs/running.md)",
         OnResume::fixed)
      .one_of({"auto", "fp32", "tf32", "bf16", "fp16", "fp8"})
      .same_as("float32", "fp32")
      .same_as("no", "fp32")
      .same_as("tensorfloat32", "tf32")
      .same_as("bfloat16", "bf16")
      .same_as("float16", "fp16")
      .flag("bf16", "bf16", "fp32")
      .flag("fp16", "fp16")  // auto never takes it
      .also({"dtype", "mixed_precision", "torch_dtype"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("training.master_weights", training.master_weights,
                   "keep an fp32 copy of the layers' weights; false saves memory by keeping them only in bf16, updated "
                   "with stochastic rounding (needs a GPU and precision bf16 or fp8)",
                   OnResume::fixed)
      .also({"fp32_master_weights"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "training.gradient_checkpointing", training.gradient_checkpointing,
         "keep the activations of every n-th layer only and compute the others again in the backward pass: less "
         "memory, more time; true means 1, 0 turns it off",
         OnResume::fixed)
      .at_least(0)
      .at_most(1000)
      .or_flag()
      .in("layers")
      .also({"activation_checkpointing", "checkpoint_every_n_layers", "model.gradient_checkpointing"})
      .same_in_smoke_test()
      .everywhere();
  all.emplace_back("training.seed", training.seed,
                   "random seed for the initial weights, the order of the data and dropout", OnResume::fixed)
      .at_least(0)
      .also({"random_seed", ".seed"})
      .same_in_smoke_test()
      .everywhere();
  all.emplace_back(
         "training.logical_ranks", training.logical_ranks,
         "parts of a step that are summed in a fixed order, a power of two: any number of processes that divides it "
         "gives the same bits, on processors of one kind; 0: one part for each process",
         OnResume::fixed)
      .at_least(0)
      .at_most(256)
      .same_in_smoke_test()
      .everywhere();
}

}  // namespace

void declare_training_options(Job& job, std::vector<Option>& all) {
  declare_batches(job, all);
  declare_optimizer(job, all);
  declare_schedule(job, all);
  declare_number_formats(job, all);
}

}  // namespace brisk
