#include "comm/communicator.h"

#include <algorithm>

#include "base/sum_tree.h"

namespace brisk {

constinit thread_local bool BackgroundCollectives::on_this_thread_ = false;

// One call of a collective, in which this rank sends so many bytes.
class Communicator::Call {
 public:
  Call(Communicator& ranks, int64_t bytes) : ranks_(ranks) {
    BRISK_CHECK(!ranks.is_called_.exchange(true, std::memory_order_acquire),
                "two threads of rank {} talk to the others", ranks.rank());
    ranks.bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  ~Call() { ranks_.is_called_.store(false, std::memory_order_release); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Communicator& ranks_;
};

namespace {
int64_t length_of(std::span<const int64_t> bounds, int rank) {
  return bounds[static_cast<size_t>(rank) + 1] - bounds[static_cast<size_t>(rank)];
}
}  // namespace

void Communicator::barrier() {
  const Call call(*this, 0);
  do_barrier();
}

void Communicator::all_gather(const void* own, void* all, int64_t bytes) {
  const Call call(*this, bytes * (size() - 1));
  do_all_gather(own, all, bytes);
}

void Communicator::sum_ranges(float* data, std::span<const int64_t> bounds) {
  const int64_t others = bounds.back() - bounds.front() - length_of(bounds, rank());
  const Call call(*this, others * static_cast<int64_t>(sizeof(float)));
  do_sum_ranges(data, bounds);
}

void Communicator::share_ranges(void* data, std::span<const int64_t> bounds) {
  const Call call(*this, length_of(bounds, rank()) * (size() - 1));
  do_share_ranges(data, bounds);
}

void Communicator::collect_ranges(void* data, std::span<const int64_t> bounds, int root) {
  const Call call(*this, rank() == root ? 0 : length_of(bounds, rank()));
  do_collect_ranges(data, bounds, root);
}

std::vector<double> Communicator::gather(double own) {
  std::vector<double> all(static_cast<size_t>(size()));
  all_gather(&own, all.data(), sizeof(double));
  return all;
}

double Communicator::sum(double own) { return sum_in_tree(gather(own)); }

void Communicator::sum(std::span<double> numbers) {
  const size_t count = numbers.size();
  std::vector<double> all(count * static_cast<size_t>(size())), of_one(static_cast<size_t>(size()));
  all_gather(numbers.data(), all.data(), static_cast<int64_t>(numbers.size_bytes()));
  for (size_t i = 0; i < count; ++i) {
    for (size_t rank = 0; rank < of_one.size(); ++rank) of_one[rank] = all[rank * count + i];
    numbers[i] = sum_in_tree(of_one);
  }
}

double Communicator::first(double own) { return gather(own).front(); }

std::vector<std::string> Communicator::gather(const std::string& own) {
  const std::vector<double> sizes = gather(static_cast<double>(own.size()));
  const auto longest = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = own;
  padded.resize(longest);
  std::string all(longest * sizes.size(), '\0');
  all_gather(padded.data(), all.data(), static_cast<int64_t>(longest));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank)
    texts.push_back(all.substr(rank * longest, static_cast<size_t>(sizes[rank])));
  return texts;
}

}  // namespace brisk
