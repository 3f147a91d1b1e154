// A log that nobody reads.
//
//   Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
#pragma once

#include <brisk/log.h>

namespace brisk::test {

class SilentLog final : public LogSink {
  void line(LogLevel /*level*/, std::string_view /*text*/) override {}
};

}  // namespace brisk::test
