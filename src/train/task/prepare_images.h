// From the job's images to examples: the table that names them, which of them can be read, the tokens of their texts or their
// classes, the two parts, and the images themselves, decoded ahead of their use.
//
//   ImageData prepared = prepare_images(job, std::move(request), layout);     // UserError on what a user can fix
//   prepared.table.train;                                                     // examples, as those of texts
//   prepared.train_images->get(prepared.table.train.row_of(7));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/images/image_store.h"
#include "data/images/image_table.h"
#include "image/image_input.h"
#include "job/job.h"
#include "train/task/prepare_table.h"
#include "train/task/task.h"

namespace brisk {

struct ImageData {
  TableData table;                                                    // of classes: without a tokenizer
  std::shared_ptr<const ImageStore> train_images, validation_images;  // of all rows of their examples' data
  // The readable rows of each data, before they were divided or left out, and what they are known by.
  ExampleSet train_rows, validation_rows;
  std::string train_fingerprint, validation_fingerprint;
  // Where the validation data is as it was written; none where it is a part of the training data.
  std::shared_ptr<const ImageTable> validation_table;
};
// The job's own training images, or those that it is evaluated on.
ImageTable open_job_images(const Job& job, ImagePart part);

ImageData prepare_images(const Job& job, DataRequest request, const ImageLayout& layout);

// Other images for a trained model, with the columns and folders of its job where `paths` have them: tables; a folder with
// folders of images for each class; of a job with folders of images and texts the JSON file that divides them, of which the test
// list is taken, or another folder of texts.
struct OtherImages {
  std::shared_ptr<const ImageTable> table;
  ImageRows rows;
  std::shared_ptr<const ImageStore> images;
  std::vector<std::string> notes;
};
OtherImages open_other_images(const std::vector<std::string>& paths, const Job& job, const Tokenizer* tokenizer,
                              const LabelSet& labels, const ImageLayout& layout);

// "images       2,700 of 224 x 224 pixels, 197 rows each"
std::string describe_image_input(const ImageLayout& layout, int64_t images);

}  // namespace brisk
