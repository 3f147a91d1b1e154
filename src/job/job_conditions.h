// Where an option of a job applies: conditions on its task, its model and other options, by name.
//
//   options.emplace_back("training.mlm_probability", ...).only_with(with_masked_tokens(job));
//
// Tasks and architectures are told apart by their traits (job/tables.h): an option applies to a new one because of what it
// is. A condition refers to `job`, as the options do.
#pragma once

#include <string>

#include "job/job.h"
#include "job/options/options.h"
#include "job/tables.h"

namespace brisk {

// Of the task. `otherwise` says why it does not apply elsewhere.
Condition with_labels(const Job& job, const std::string& otherwise = "it has no classes");
Condition with_masked_tokens(const Job& job);
Condition with_encoder_task(const Job& job);
Condition with_encoder_decoder_task(const Job& job);
Condition with_pairs_of_texts(const Job& job);                              // one to read and one to write
Condition with_single_texts(const Job& job, const std::string& otherwise);  // any other task than that
Condition with_texts_of_images(const Job& job);                             // to write

// Of the model.
Condition with_encoder(const Job& job, const std::string& otherwise);
Condition with_decoder(const Job& job, const std::string& otherwise);
Condition with_encoder_decoder(const Job& job);
Condition with_images(const Job& job);  // that it reads
Condition with_image_classifier(const Job& job);
Condition with_image_to_text_model(const Job& job);  // an encoder-decoder that reads images
Condition with_texts(const Job& job);                // that it reads, where its task has models of both kinds
Condition with_type(const Job& job, const std::string& type);
Condition with_adaptable_layers(const Job& job);  // that adapters and freezing know
Condition with_reference(const Job& job);         // model.reference
Condition with_source_model(const Job& job);      // model.from

// Of the vocabulary that is trained where none is given.
Condition with_own_wordpiece(const Job& job);
Condition with_own_bpe(const Job& job);

// Of the training.
Condition with_optimizer(const Job& job, const std::string& optimizer);
Condition with_adapters(const Job& job);
Condition with_frozen_layers(const Job& job);
Condition with_teacher(const Job& job);
Condition with_validation(const Job& job);   // data to evaluate on
Condition with_evaluations(const Job& job);  // on that, or samples

}  // namespace brisk
