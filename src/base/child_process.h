// This program, started again with other arguments; its output goes to a file.
//
//   ChildProcess child({"train", "job.json"}, folder + "/output.txt");
//   child.wait(60);                       // seconds
//   if (!child.succeeded()) ... child.last_words()
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace brisk {

class ChildProcess {
 public:
  ChildProcess(const std::vector<std::string>& arguments, std::string output_path);
  ~ChildProcess();  // kills it if it is still running
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits until it ends, `stop` returns true, or the time is over. Returns whether it ended.
  bool wait(double seconds, const std::function<bool()>& stop = nullptr);
  void kill();  // SIGKILL, and waits

  bool ended() const { return ended_; }
  bool succeeded() const;            // exit code 0
  std::string how_it_ended() const;  // "exit code 2", "signal 11", "it was still running"
  std::string last_words() const;    // the end of its output

 private:
  bool reap(bool block);

  pid_t pid_ = -1;
  std::string output_path_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace brisk
