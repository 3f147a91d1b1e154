// The control connection: one TCP connection from every rank to rank 0. It carries heartbeats and the message that ends the job,
// and nothing else: data, and what ranks agree on, goes by MPI, NCCL or shared memory.
//
//   std::unique_ptr<Control> control = open_control(mpi);        // or open_control(world): by MASTER_ADDR and MASTER_PORT
//   control->at_step(17);                                        // told with the next heartbeat
//
// A thread of its own watches it, since the main thread may wait inside a collective that never ends. A rank whose process
// has ended is noticed at once, one that is stopped or cannot be reached after kSilenceSeconds without a heartbeat: then one
// rank says which, on which host and after which step, and the processes of all that hear of it end with exit code 3, as if
// they were killed (whatever is on the disk is written atomically). A rank that ends with an error tells it by fail(): rank 0
// says it, and all end with exit code 2.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/shared_memory.h"
#include "comm/socket.h"
#include "comm/world.h"

namespace brisk {

// Where rank 0 waits for the others.
class ControlListener {
 public:
  // 0: any port that is free. UserError where it is taken; `name` is the port's there. On all addresses, or where ranks of this
  // machine alone can reach it.
  ControlListener(int port, const std::string& name, bool of_this_machine = false);
  int port() const { return port_; }
  int descriptor() const { return socket_.get(); }

 private:
  Socket socket_;
  int port_;
};

struct ControlOptions {
  int rank = 0, size = 1;
  uint64_t key = 0;                    // the same for the ranks of a job, another for other jobs
  std::vector<std::string> addresses;  // of rank 0, tried in this order
  int port = 0;
  std::string name = "its address";  // of that address in messages: "MASTER_ADDR and MASTER_PORT"
  double patience_seconds = 120;     // until all ranks are there
  double silence_seconds = kSilenceSeconds;
  // Ends the process, from the control's thread: an empty message is told by another rank. Tests have their own.
  std::function<void(int exit_code, const std::string& message)> end = {};
};

class Control {
 public:
  // Returns when all ranks are there. UserError where they do not come, or do not fit. Rank 0 has a listener.
  explicit Control(ControlOptions options, std::unique_ptr<ControlListener> listener = nullptr);
  ~Control();  // a rank that leaves so is not missed
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  const std::vector<std::string>& hosts() const;  // of every rank
  bool is_one_machine() const;                    // all ranks are on one, and see the same network

  void at_step(int64_t step);
  // This rank ends with this reason; returns when rank 0 knows. It says whether somebody tells it.
  bool fail(const std::string& reason) noexcept;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

// Called before a control ends its process, from its thread: what a start has made can go. Null: nothing.
using EndHook = void (*)();
void set_end_hook(EndHook hook);

// Collective over ranks that are connected already: they tell each other where rank 0 listens. BRISK_CONTROL_PORT chooses its
// port, BRISK_CONTROL_ADDRESS its address as the others see it.
std::unique_ptr<Control> open_control(Communicator& ranks);

// By the address that a torchrun-style launcher gives: MASTER_ADDR and MASTER_PORT.
std::unique_ptr<Control> open_control(const World& world);

}  // namespace brisk
