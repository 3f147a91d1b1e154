// What is behind brisk/model.h.
#pragma once

#include <brisk/model.h>

#include <memory>

#include "base/runtime.h"
#include "infer/answer/generate.h"
#include "infer/answer/predict.h"
#include "infer/answer/translate.h"
#include "infer/open/trained_model.h"

namespace brisk {

struct LoadedModel::Content {
  Runtime& runtime;
  std::unique_ptr<TrainedModel> model;
  std::unique_ptr<Generator> generator;    // made with the first text
  std::unique_ptr<Translator> translator;  // likewise

  // The runtime bound to this thread, with the cache directory of the model's run.
  class Scope {
   public:
    explicit Scope(const Content& content) : runtime_(content.runtime), cache_(content.model->job.data.cache_dir) {}

   private:
    RuntimeScope runtime_;
    CacheDirectoryScope cache_;
  };

  // As many tokens as asked for, 0: as in training. UserError where the model has fewer positions.
  int64_t length(int64_t asked) const;
};

// UserError where more texts are asked for than are searched.
void check_translate_options(const TranslateOptions& options);

}  // namespace brisk
