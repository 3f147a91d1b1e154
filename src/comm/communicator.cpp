#include "comm/communicator.h"

#include <algorithm>

#include "base/sum_tree.h"

namespace brisk {

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
