// Ranks are processes here, so that one can be killed or stopped.
#include "comm/control.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

// What the control would have ended this process with.
class End {
 public:
  std::function<void(int, const std::string&)> function() {
    return [this](int code, const std::string& message) {
      const std::lock_guard lock(mutex_);
      code_ = code;
      message_ = message;
      changed_.notify_all();
    };
  }
  bool wait(double seconds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return code_ >= 0; });
  }
  int code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int code_ = -1;
  std::string message_;
};

ControlOptions options_of(int rank, int size, int port) {
  return {.rank = rank, .size = size, .key = 7, .addresses = {"127.0.0.1"}, .port = port, .patience_seconds = 20};
}

std::unique_ptr<ControlListener> any_port() { return std::make_unique<ControlListener>(0, "any port"); }

// A process that is rank `rank`, until it is killed. Started before this one has threads.
class RankProcess {
 public:
  explicit RankProcess(const std::function<void()>& body) : process_(::fork()) {
    if (process_ == 0) {
      Runtime runtime({.threads = 1});
      const RuntimeScope scope(runtime);
      try {
        body();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(0);
    }
  }
  ~RankProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  void send(int number) const { ::kill(process_, number); }

 private:
  pid_t process_;
};

class ControlTest : public ::testing::Test {
 protected:
  Runtime runtime_{{.threads = 1}};
  RuntimeScope scope_{runtime_};
  std::unique_ptr<ControlListener> listener_ = any_port();
  int port_ = listener_->port();
  End end_;

  ControlOptions own(int rank, int size) {
    ControlOptions options = options_of(rank, size, port_);
    options.end = end_.function();
    return options;
  }
  // That of rank 1 of 2, at step 17.
  RankProcess other() {
    return RankProcess([&] {
      Control control(options_of(1, 2, port_));
      control.at_step(17);
      ::pause();
    });
  }
  static void wait_for_a_heartbeat() { std::this_thread::sleep_for(std::chrono::milliseconds(1200)); }
};

TEST_F(ControlTest, KnowsTheHostsOfAllRanks) {
  std::vector<std::thread> ranks;
  std::vector<std::string> problems(3);
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      Runtime runtime({.threads = 1});
      const RuntimeScope scope(runtime);
      try {
        Control control(options_of(rank, 3, port_), rank == 0 ? std::move(listener_) : nullptr);
        if (!control.is_one_machine() || control.hosts() != std::vector<std::string>(3, host_name()))
          problems[static_cast<size_t>(rank)] = "hosts";
      } catch (const std::exception& error) {
        problems[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_F(ControlTest, NamesTheRankThatWasKilled) {
  RankProcess rank = other();
  Control control(own(0, 2), std::move(listener_));
  wait_for_a_heartbeat();
  rank.send(SIGKILL);
  ASSERT_TRUE(end_.wait(5));
  EXPECT_EQ(end_.code(), kExitRankLost);
  EXPECT_EQ(end_.message(), "rank 1 of 2 on " + host_name() +
                                " has ended after step 17. Continue from the last checkpoint with --resume");
}

TEST_F(ControlTest, NamesTheRankThatIsStopped) {
  RankProcess rank = other();
  ControlOptions options = own(0, 2);
  options.silence_seconds = 2;
  Control control(std::move(options), std::move(listener_));
  wait_for_a_heartbeat();
  rank.send(SIGSTOP);
  EXPECT_FALSE(end_.wait(1));
  ASSERT_TRUE(end_.wait(5));
  EXPECT_EQ(end_.code(), kExitRankLost);
  EXPECT_NE(end_.message().find("rank 1 of 2 on " + host_name() + " has given no sign of life for 2 s"),
            std::string::npos)
      << end_.message();
  EXPECT_NE(end_.message().find("its last step was 17"), std::string::npos) << end_.message();
}

// Whoever was stopped itself, and wakes up, hears that the others have told of it.
TEST_F(ControlTest, Rank0ThatWasMissedSaysNothing) {
  RankProcess rank([&] {
    ControlOptions options = options_of(1, 2, port_);
    options.silence_seconds = 0.1;  // it misses rank 0 between two heartbeats
    Control control(std::move(options));
    ::pause();
  });
  Control control(own(0, 2), std::move(listener_));
  ASSERT_TRUE(end_.wait(5));
  EXPECT_EQ(end_.code(), kExitRankLost);
  EXPECT_EQ(end_.message(), "");
}

TEST_F(ControlTest, ARankThatLeavesIsNotMissed) {
  RankProcess rank([&] { Control control(options_of(1, 2, port_)); });
  Control control(own(0, 2), std::move(listener_));
  EXPECT_FALSE(end_.wait(2));
}

TEST_F(ControlTest, TheOthersSeeThatRank0IsGone) {
  RankProcess first([&] {
    Control control(options_of(0, 2, port_), std::move(listener_));
    control.at_step(3);
    ::pause();
  });
  listener_.reset();
  Control control(own(1, 2));
  wait_for_a_heartbeat();
  first.send(SIGKILL);
  ASSERT_TRUE(end_.wait(5));
  EXPECT_EQ(end_.code(), kExitRankLost);
  EXPECT_NE(end_.message().find("rank 0 of 2 on " + host_name() + " has ended after step 3"), std::string::npos)
      << end_.message();
}

TEST_F(ControlTest, ARankThatFailsEndsTheOthersWithItsReason) {
  RankProcess rank([&] {
    Control control(options_of(1, 2, port_));
    control.fail("the disk is full");
  });
  Control control(own(0, 2), std::move(listener_));
  ASSERT_TRUE(end_.wait(5));
  EXPECT_EQ(end_.code(), 2);
  EXPECT_EQ(end_.message(), "rank 1 of 2 on " + host_name() + ": the disk is full");
}

TEST_F(ControlTest, AnotherRankTellsWhatRank0FailsWith) {
  RankProcess first([&] {
    Control control(options_of(0, 2, port_), std::move(listener_));
    control.fail("the job is wrong");
  });
  listener_.reset();
  Control control(own(1, 2));
  ASSERT_TRUE(end_.wait(6));
  EXPECT_EQ(end_.code(), 2);
  EXPECT_EQ(end_.message(), "");  // rank 0 says it
}

TEST_F(ControlTest, StrangersAreLeftOut) {
  const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_GT(::send(stranger, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  RankProcess rank = other();
  Control control(own(0, 2), std::move(listener_));
  // A rank of another job that comes later is refused, and this one goes on.
  ControlOptions late = options_of(1, 2, port_);
  const std::string problem = test::message_of<UserError>([&] { Control another(std::move(late)); });
  EXPECT_NE(problem.find("two jobs use the same"), std::string::npos) << problem;
  EXPECT_FALSE(end_.wait(1));
  ::close(stranger);
}

TEST_F(ControlTest, RefusesRanksThatWereNotStartedTogether) {
  RankProcess rank([&] { Control control(options_of(1, 3, port_)); });
  const std::string problem = test::message_of<UserError>([&] { Control control(own(0, 2), std::move(listener_)); });
  EXPECT_NE(problem.find("rank 1 of 3 on"), std::string::npos) << problem;
  EXPECT_NE(problem.find("where ranks 1 to 1 of 2 are expected"), std::string::npos) << problem;
}

TEST_F(ControlTest, NamesTheRanksThatDoNotCome) {
  ControlOptions options = own(0, 3);
  options.patience_seconds = 1;
  const std::string problem =
      test::message_of<UserError>([&] { Control control(std::move(options), std::move(listener_)); });
  EXPECT_NE(problem.find("of 3 ranks these did not come"), std::string::npos) << problem;
  EXPECT_NE(problem.find(": 1 2"), std::string::npos) << problem;
}

TEST_F(ControlTest, SaysWhyRank0CannotBeReached) {
  const auto problem_with = [&](const std::string& host, int port) {
    ControlOptions options = own(1, 2);
    options.patience_seconds = 0.5;
    options.addresses = {host};
    options.port = port;
    return test::message_of<UserError>([&] { Control control(std::move(options)); });
  };
  const std::string unknown = problem_with("no-such-host.invalid", port_);
  EXPECT_NE(unknown.find("\"no-such-host.invalid\" does not resolve"), std::string::npos) << unknown;
  listener_.reset();
  const std::string nobody = problem_with("127.0.0.1", port_);
  EXPECT_NE(nobody.find("refused"), std::string::npos) << nobody;
}

TEST_F(ControlTest, SaysThatAPortIsTaken) {
  const std::string problem = test::message_of<UserError>([&] { ControlListener(port_, "MASTER_PORT"); });
  EXPECT_NE(problem.find("(MASTER_PORT) is taken on"), std::string::npos) << problem;
}

}  // namespace
}  // namespace brisk
