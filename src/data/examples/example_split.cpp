#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "data/examples/examples.h"

namespace brisk {

namespace {

struct Ticket {
  uint64_t draw;  // of its text: copies have one number
  int32_t label;
  int64_t index;
};

// The copies of a text: a range of the sorted tickets.
struct Copies {
  size_t begin, end;
  int64_t size() const { return static_cast<int64_t>(end - begin); }
};

// Copies may be labelled differently; together they count for the class that most of them have.
int32_t class_of(const std::vector<Ticket>& tickets, const Copies& copies) {
  int32_t best = tickets[copies.begin].label;
  size_t most = 0;
  for (size_t begin = copies.begin; begin < copies.end;) {  // sorted by label
    size_t end = begin;
    while (end < copies.end && tickets[end].label == tickets[begin].label) ++end;
    if (end - begin > most) {
      most = end - begin;
      best = tickets[begin].label;
    }
    begin = end;
  }
  return best;
}

// How many examples each class gives: its share rounded down, and one more for the largest remainders, until there are
// `wanted`. A class of one text gives none.
std::vector<int64_t> seats_of_classes(const std::vector<int64_t>& examples, const std::vector<int64_t>& texts,
                                      double fraction, int64_t wanted, uint64_t site) {
  std::vector<int64_t> seats(examples.size(), 0);
  std::vector<size_t> order;
  int64_t given = 0;
  const auto share = [&](size_t i) { return fraction * static_cast<double>(examples[i]); };
  for (size_t i = 0; i < examples.size(); ++i) {
    if (texts[i] < 2) continue;
    seats[i] = static_cast<int64_t>(share(i));
    given += seats[i];
    order.push_back(i);
  }
  const auto remainder = [&](size_t i) { return share(i) - std::floor(share(i)); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return remainder(a) > remainder(b) || (remainder(a) == remainder(b) && mix64(site ^ a) < mix64(site ^ b));
  });
  for (size_t i = 0; i < order.size() && given < wanted; ++i) {
    ++seats[order[i]];
    ++given;
  }
  return seats;
}

}  // namespace

ExampleSplit split_examples(const ExampleSet& all, double fraction, uint64_t seed) {
  BRISK_CHECK(fraction >= 0 && fraction < 1, "fraction = {}", fraction);
  const auto without_validation = [&](const char* why) { return ExampleSplit{all, all.subset({}), why}; };
  if (fraction == 0) return without_validation("no validation part (validation_fraction is 0)");
  constexpr uint64_t kSplitSite = 0x73706C6974;  // "split", as documents are (data/corpus/corpus.h)
  const uint64_t site = random_key({seed, kSplitSite});

  std::vector<Ticket> tickets;
  tickets.reserve(static_cast<size_t>(all.count()));
  for (int64_t i = 0; i < all.count(); ++i) {
    tickets.push_back({mix64(site ^ all.text_hash(i)), std::max(0, all.label(i)), i});
  }
  std::sort(tickets.begin(), tickets.end(), [](const Ticket& a, const Ticket& b) {
    return std::tie(a.draw, a.label, a.index) < std::tie(b.draw, b.label, b.index);
  });

  // The texts of each class, by their draws.
  std::vector<std::vector<Copies>> of_class(static_cast<size_t>(std::max<int64_t>(1, all.labels().count())));
  std::vector<int64_t> examples(of_class.size(), 0), texts(of_class.size(), 0);
  for (size_t begin = 0; begin < tickets.size();) {
    Copies copies{begin, begin};
    while (copies.end < tickets.size() && tickets[copies.end].draw == tickets[begin].draw) ++copies.end;
    const auto label = static_cast<size_t>(class_of(tickets, copies));
    of_class[label].push_back(copies);
    examples[label] += copies.size();
    ++texts[label];
    begin = copies.end;
  }

  const auto wanted = std::max<int64_t>(1, std::llround(fraction * static_cast<double>(all.count())));
  const std::vector<int64_t> seats = seats_of_classes(examples, texts, fraction, wanted, site);
  std::vector<bool> chosen(static_cast<size_t>(all.count()), false);
  int64_t taken = 0;
  for (size_t label = 0; label < of_class.size(); ++label) {
    int64_t left = std::min(seats[label], examples[label] - 1);
    int64_t texts_left = texts[label];
    for (const Copies& copies : of_class[label]) {
      if (left <= 0 || texts_left < 2) break;  // training keeps one text
      if (copies.size() > left) continue;
      for (size_t i = copies.begin; i < copies.end; ++i) chosen[static_cast<size_t>(tickets[i].index)] = true;
      left -= copies.size();
      taken += copies.size();
      --texts_left;
    }
  }
  if (taken == 0)
    return without_validation(all.labels().count() > 0 ? "no validation part: too few different texts in each class"
                                                       : "no validation part: too few different texts");

  ChunkListBuilder train(all.data().cache_directory()), validation(all.data().cache_directory());
  for (int64_t i = 0; i < all.count(); ++i) {
    (chosen[static_cast<size_t>(i)] ? validation : train).add(all.rows()[static_cast<size_t>(i)]);
  }
  ExampleSplit split{all.subset(std::move(train).finish()), all.subset(std::move(validation).finish()), ""};
  const bool labelled = all.labels().count() > 0;
  split.note = fmt::format("validation: {} of {} {} ({:.1f} %){}", taken, all.count(), labelled ? "examples" : "texts",
                           100.0 * static_cast<double>(taken) / static_cast<double>(all.count()),
                           labelled ? ", each class in its share" : "");
  return split;
}

}  // namespace brisk
