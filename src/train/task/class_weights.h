// What classes count in the loss, and how they are described: of texts and of images.
#pragma once

#include <string>

#include "data/table/labels.h"
#include "job/job.h"
#include "train/task/prepare_table.h"

namespace brisk {

// As training.class_weights says, with a note.
void weigh_classes(const Job& job, TableData& prepared);

// "3 classes: cat, dog, owl; the best model is chosen by validation accuracy"; `best_by` empty: nothing is evaluated.
std::string describe_classes(const LabelSet& labels, const std::string& best_by);

}  // namespace brisk
