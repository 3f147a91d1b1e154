#include <benchmark/benchmark.h>

#include "base/runtime.h"

int main(int argc, char** argv) {
  brisk::Runtime runtime;
  const brisk::RuntimeScope scope(runtime);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
