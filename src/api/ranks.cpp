#include <brisk/ranks.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>

#include "base/runtime.h"
#include "base/threads.h"
#include "comm/communicator.h"
#include "comm/world.h"
#include "train/engine/process_group.h"

namespace brisk {

namespace {

// Of a rank where a machine has several: launchers that bind ranks to cores have divided them already.
int threads_of_rank(const World& world) {
  if (const std::string given(Runtime::current().environment("BRISK_RANK_THREADS")); !given.empty())
    return std::max(1, std::atoi(given.c_str()));
  const int own = available_cores(), all = static_cast<int>(std::thread::hardware_concurrency());
  const int share = std::max(1, all / std::max(1, world.local_size));
  return std::min(own, share);
}

}  // namespace

struct Ranks::Content {
  Runtime& runtime;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ConnectedProcesses> processes;
};

Ranks::Ranks(Runtime& runtime) {
  const RuntimeScope scope(runtime);
  const World world = find_world();
  content_.reset(new Content{.runtime = runtime, .communicator = open_communicator(world), .processes = nullptr});
  if (!content_->communicator) return;
  content_->processes = std::make_unique<ConnectedProcesses>(*content_->communicator, std::max(1, world.local_size));
  runtime.set_quiet(world.rank > 0);
  if (world.local_size > 1) runtime.set_threads(threads_of_rank(world));
}

// Whoever catches an error that ends it finds the runtime as quiet as it was.
Ranks::~Ranks() {
  if (std::uncaught_exceptions() == 0) content_->runtime.set_quiet(false);
}

int Ranks::rank() const { return content_->communicator ? content_->communicator->rank() : 0; }
int Ranks::size() const { return content_->communicator ? content_->communicator->size() : 1; }
std::string Ranks::transport() const { return content_->communicator ? content_->communicator->transport() : ""; }

void Ranks::fail(const std::string& reason) noexcept {
  if (content_->communicator) content_->communicator->fail(reason);
}

ProcessGroup& Ranks::group() {
  return content_->processes ? static_cast<ProcessGroup&>(*content_->processes) : single_process();
}

}  // namespace brisk
