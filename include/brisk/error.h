// Errors, of two kinds: what the user can fix, and bugs in brisk; and the end of a call that was cancelled. Besides these,
// std::bad_alloc where memory runs out.
//
//   try {
//     brisk::train(runtime, job);
//   } catch (const brisk::UserError& error) {
//     std::cerr << error.what() << "\n";      // "job.json: model.d_modl: unknown key; did you mean model.d_model?"
//   }
#pragma once

#include <stdexcept>
#include <string>

// What a shared library shows of itself. Everything else in it is hidden.
#define BRISK_API __attribute__((visibility("default")))

namespace brisk {

// An error the user can fix. The message names the place, what was found, what was expected, and the fix. It may quote
// files from anywhere: control characters other than line ends and tabs are escapes in it, so that it can be printed.
class BRISK_API UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message);
};

// A bug in brisk.
class BRISK_API InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Runtime::cancel() ended a call before it had a result.
class BRISK_API Cancelled : public std::runtime_error {
 public:
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace brisk
