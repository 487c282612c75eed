#include <reel/data/loader.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <reel/autocast.h>
#include <reel/cancellation.h>
#include <reel/ops.h>
#include <reel/random.h>
#include <reel/tape.h>
#include <reel/train/interruption.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

using Batches = std::vector<std::vector<int>>;

std::vector<int> numbers(int count) {
  std::vector<int> items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), 0);
  return items;
}

template <class L>
Batches epoch_of(L& loader) {
  Batches batches;
  for (auto& batch : loader) batches.push_back(batch);
  return batches;
}

std::vector<int> flat(const Batches& batches) {
  std::vector<int> items;
  for (const std::vector<int>& batch : batches) items.insert(items.end(), batch.begin(), batch.end());
  return items;
}

// Options that differ in all that the order depends on, but for the number of workers.
std::vector<data::LoaderOptions<int>> orders() {
  auto length = [](const int& item) { return std::int64_t{item * 37 % 23}; };
  return {{.batch_size = 7},
          {.batch_size = 7, .drop_last = true},
          {.batch_size = 5, .shuffle = true, .seed = 3},
          {.batch_size = 1, .shuffle = true, .seed = 3},
          {.batch_size = 1000, .shuffle = true},
          {.batch_size = 4, .shuffle = true, .seed = 9, .length = length, .bucket_batches = 5},
          {.batch_size = 4, .shuffle = true, .drop_last = true, .length = length, .bucket_batches = 3},
          {.batch_size = 6, .length = length, .bucket_batches = 4},
          {.batch_size = 9, .shuffle = true, .length = length, .bucket_batches = 3, .most_elements = 60}};
}

}  // namespace

TEST_CASE("without options a loader gives the items in order, the last batch smaller") {
  std::vector<int> items = numbers(70);
  data::Loader loader(items);
  Batches batches = epoch_of(loader);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].size() == 32);
  CHECK(batches[2].size() == 6);
  CHECK(flat(batches) == items);
  CHECK(loader.batches() == 3);
  CHECK(loader.epoch() == 1);
}

TEST_CASE("every order has each item once an epoch, and another one in the next epoch if it is shuffled") {
  for (data::LoaderOptions<int> options : orders()) {
    std::vector<int> items = numbers(103);
    data::Loader loader(items, options);
    Batches first = epoch_of(loader), second = epoch_of(loader);
    std::vector<int> seen = flat(first);
    CHECK((first != second) == options.shuffle);
    std::ranges::sort(seen);
    CHECK(std::ranges::adjacent_find(seen) == seen.end());
    CHECK(seen.size() == (options.drop_last ? 103 - static_cast<std::size_t>(103 % options.batch_size) : 103));
    if (loader.batches())
      CHECK(static_cast<std::size_t>(*loader.batches()) == first.size());
    else
      CHECK(options.most_elements > 0);
  }
}

TEST_CASE("the order is equal for any number of workers and any bound of the queue") {
  for (data::LoaderOptions<int> options : orders()) {
    std::vector<int> items = numbers(103);
    data::Loader alone(items, options);
    Batches expected[] = {epoch_of(alone), epoch_of(alone)};
    for (int workers : {1, 2, 7}) {
      options.workers = workers;
      options.prefetch = workers == 2 ? 1 : 0;
      data::Loader loader(items, options);
      CHECK(epoch_of(loader) == expected[0]);
      CHECK(epoch_of(loader) == expected[1]);
    }
  }
}

TEST_CASE("a state of any position of an epoch continues with what was not received, any number of times") {
  for (data::LoaderOptions<int> options : orders()) {
    std::vector<int> items = numbers(61);
    data::Loader whole(items, options);
    Batches expected = epoch_of(whole), next = epoch_of(whole);
    for (int workers : {0, 3}) {
      options.workers = workers;
      for (std::size_t cut = 0; cut <= expected.size(); ++cut) {
        data::Loader first(items, options);
        Batches received;
        auto at = first.begin();
        for (; received.size() < cut; ++at) {
          received.push_back(*at);
          if (received.size() == cut) break;
        }
        // Without a batch received, the position is that of a loader that has not begun.
        std::vector<NamedTensor> state = cut == 0 ? data::Loader(items, options).state() : first.state();
        options.workers = 2 - workers / 2;
        data::Loader second(items, options);
        second.load_state(state);
        CHECK(second.position() == static_cast<std::int64_t>(cut));
        for (auto& batch : second) received.push_back(batch);
        CHECK(received == expected);
        CHECK(epoch_of(second) == next);
        options.workers = workers;
      }
    }
  }
}

TEST_CASE("a run that is resumed after every single batch is the uninterrupted one") {
  std::vector<int> items = numbers(40);
  data::LoaderOptions<int> options{.batch_size = 3, .shuffle = true, .seed = 8, .workers = 2};
  data::Loader whole(items, options);
  std::vector<Batches> expected{epoch_of(whole), epoch_of(whole), epoch_of(whole)};
  std::vector<Batches> found(3);
  std::vector<NamedTensor> state = data::Loader(items, options).state();
  for (int resumes = 0;; ++resumes) {
    REQUIRE(resumes < 1000);
    options.workers = resumes % 4;
    data::Loader loader(items, options);
    loader.load_state(state);
    if (loader.epoch() == 3) break;
    bool received = false;
    for (auto& batch : loader) {
      found[static_cast<std::size_t>(loader.epoch())].push_back(batch);
      received = true;
      if (resumes % 3 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that batches are made ahead
      state = loader.state();
      break;
    }
    if (!received) state = loader.state();
  }
  CHECK(found == expected);
}

TEST_CASE("a loop that is left early is continued by the next one, and an epoch can be started anew") {
  std::vector<int> items = numbers(20);
  for (int workers : {0, 2}) {
    data::Loader loader(items, {.batch_size = 4, .shuffle = true, .workers = workers});
    Batches expected = epoch_of(loader);
    loader.start_epoch(0);
    Batches received;
    for (auto& batch : loader) {
      received.push_back(batch);
      if (received.size() == 2) break;
    }
    CHECK(loader.position() == 2);
    for (auto& batch : loader) received.push_back(batch);
    CHECK(received == expected);
    for (auto& batch : loader) {
      CHECK(batch != expected[0]);
      break;
    }
    loader.start_epoch(0);
    CHECK(epoch_of(loader) == expected);
    CHECK_THAT(error_of<Error>([&] { loader.start_epoch(-1); }), contains("there is no epoch -1"));
  }
}

TEST_CASE("each item's length is asked for once in an epoch") {
  std::vector<int> items(40);
  std::vector<int> asked(items.size());
  std::iota(items.begin(), items.end(), 0);
  auto length = [&](const int& item) {
    ++asked[static_cast<std::size_t>(item)];
    return std::int64_t{item % 7};
  };
  data::Loader loader(items, {.batch_size = 4, .shuffle = true, .length = length, .bucket_batches = 3});
  CHECK(epoch_of(loader).size() == 10);
  CHECK(asked == std::vector<int>(items.size(), 1));
}

TEST_CASE("items of similar length share a batch, and most_elements bounds it") {
  std::vector<int> lengths;
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) lengths.push_back(static_cast<int>(random() % 50));
  auto padding = [](const Batches& batches) {
    std::int64_t padded = 0;
    for (const auto& batch : batches)
      for (int length : batch) padded += *std::ranges::max_element(batch) - length;
    return padded;
  };
  auto identity = [](const int& item) { return std::int64_t{item}; };
  data::Loader plain(lengths, {.batch_size = 10, .shuffle = true});
  data::Loader bucketed(lengths, {.batch_size = 10, .shuffle = true, .length = identity});
  std::vector<std::int64_t> known_lengths(lengths.begin(), lengths.end());
  data::Loader known(lengths, {.batch_size = 10, .shuffle = true, .lengths = known_lengths});
  CHECK(epoch_of(known) == epoch_of(bucketed));
  data::Loader bounded(lengths, {.batch_size = 10, .shuffle = true, .length = identity, .most_elements = 120});
  CHECK(padding(epoch_of(bucketed)) < padding(epoch_of(plain)) / 10);
  for (const auto& batch : epoch_of(bounded)) {
    CHECK(static_cast<std::int64_t>(batch.size()) * *std::ranges::max_element(batch) <= 120);
    CHECK(batch.size() <= 10);
  }
  std::vector<int> single{500, 1, 2};
  data::Loader beyond(single, {.length = identity, .most_elements = 120});
  CHECK(epoch_of(beyond) == Batches{{1, 2}, {500}});
}

TEST_CASE("collate makes the batches, and random numbers do not depend on the workers") {
  std::vector<int> items = numbers(50);
  auto noisy = data::transformed(items, [](int item, Generator& generator) {
    return static_cast<double>(item) + rand({}, {.generator = &generator}).item() + rand({}).item();
  });
  auto collate = [](std::vector<double> values) { return tensor(values) + rand({}, {.dtype = f64}); };
  auto epoch = [](auto& loader) {
    std::vector<double> all;
    for (Tensor& batch : loader)
      for (double value : batch.template to_vector<double>()) all.push_back(value);
    return all;
  };
  manual_seed(4);
  double next = rand({}).item();
  manual_seed(4);
  data::Loader alone(noisy, collate, {.batch_size = 8, .shuffle = true, .seed = 6});
  std::vector<double> first = epoch(alone), second = epoch(alone);
  CHECK(rand({}).item() == next);  // the caller's own numbers are not used up
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  CHECK(std::adjacent_find(first.begin(), first.end()) == first.end());
  for (int workers : {1, 3}) {
    data::Loader loader(noisy, collate, {.batch_size = 8, .shuffle = true, .seed = 6, .workers = workers});
    std::vector<double> found = epoch(loader);
    std::sort(found.begin(), found.end());
    CHECK(found == first);
    CHECK(epoch(loader) == second);
  }
}

TEST_CASE("nothing is recorded while batches are made") {
  std::vector<int> items = numbers(6);
  Tensor weight = ones({2}).requires_grad();
  auto scaled = data::transformed(items, [&](int item) { return weight * item; });
  for (int workers : {0, 2}) {
    data::Loader loader(scaled, {.batch_size = 2, .workers = workers});
    Tape tape;
    for (auto& batch : loader) {
      CHECK(is_recording());
      CHECK_THROWS_AS(tape.backward(sum(batch[0])), Error);
    }
  }
}

TEST_CASE("autocast of the caller does not reach what makes batches, and holds for the loop") {
  std::vector<int> items = numbers(4);
  auto products = data::transformed(items, [](int item) { return matmul(full({2, 2}, item), ones({2, 2})); });
  for (int workers : {0, 2}) {
    data::Loader loader(products, {.batch_size = 2, .workers = workers});
    auto scope = autocast(bf16);
    for (auto& batch : loader) {
      CHECK(batch[1].dtype() == f32);
      CHECK(matmul(batch[1], batch[1]).dtype() == bf16);
    }
  }
}

TEST_CASE("an exception of the dataset, of collate or of a length surfaces at its batch and names the item") {
  struct Item {
    int value;
    data::Source source;
  };
  std::vector<Item> items;
  for (int i = 0; i < 30; ++i) items.push_back({i, data::Source("numbers.txt", i + 1)});
  auto refusing = data::transformed(items, [](const Item& item) {
    if (item.value == 17) throw std::invalid_argument("seventeen is not wanted");
    return item.value;
  });
  auto collate = [](std::vector<Item> batch) {
    for (const Item& item : batch)
      if (item.value == 17) throw std::runtime_error("no batch with 17");
    return batch.size();
  };
  auto length = [](const int& item) {
    if (item == 17) throw std::runtime_error("no length");
    return std::int64_t{item};
  };
  for (int workers : {0, 1, 4}) {
    data::Loader of_items(refusing, {.batch_size = 5, .workers = workers});
    for (int attempt = 0; attempt < 2; ++attempt) {  // the loader stays before the batch
      int received = 0;
      std::string said;
      try {
        of_items.start_epoch(0);
        for (auto& batch : of_items) received += static_cast<int>(batch.size());
      } catch (const data::LoadError& error) {
        said = error.what();
        CHECK_THROWS_AS(std::rethrow_if_nested(error), std::invalid_argument);
      }
      CHECK(received == 15);
      CHECK(of_items.position() == 3);
      CHECK_THAT(said, contains("item 17 (numbers.txt:18): seventeen is not wanted") && contains("loader_test.cpp:"));
      CHECK_THROWS_AS(of_items.begin(), data::LoadError);
    }

    data::Loader of_batches(items, collate, {.batch_size = 5, .workers = workers});
    CHECK_THAT(error_of<data::LoadError>([&] {
                 for (auto& batch : of_batches) CHECK(batch == 5);
               }),
               contains("the batch of the items 15, 16, 17, 18, 19 (numbers.txt:16, ") && contains("no batch with 17"));
    CHECK(of_batches.position() == 3);

    std::vector<int> plain = numbers(30);
    data::Loader of_lengths(plain, {.batch_size = 2, .workers = workers, .length = length, .bucket_batches = 3});
    int received = 0;
    CHECK_THAT(error_of<data::LoadError>([&] {
                 for (auto& batch : of_lengths) received += static_cast<int>(batch.size());
               }),
               contains("item 17: no length"));
    CHECK(received == 12);
  }
}

TEST_CASE("what is no std::exception, and a lack of memory, keep their type") {
  std::vector<int> items = numbers(4);
  for (int workers : {0, 2}) {
    data::Loader odd(data::transformed(items, [](int item) { return item == 3 ? throw 5 : item; }),
                     {.workers = workers});
    CHECK_THROWS_AS(epoch_of(odd), int);
    data::Loader full(data::transformed(items, [](int item) { return item == 3 ? throw std::bad_alloc() : item; }),
                      {.workers = workers});
    CHECK_THROWS_AS(epoch_of(full), std::bad_alloc);
  }
}

TEST_CASE("a signal's exception passes a loader as it is, so that the program ends with the signal's status") {
  struct Enough : std::exception, Cancellation {};
  std::vector<int> items = numbers(8);
  auto refuse = [](int item) {
    if (item == 3) throw train::Interrupted(SIGTERM);
    return item;
  };
  auto received = [](auto& loader) {
    try {
      for (auto& batch : loader) (void)batch;
    } catch (const train::Interrupted& interrupted) {
      CHECK(interrupted.exit_status() == 143);
    }
    return loader.position();
  };
  for (int workers : {0, 2}) {
    data::Loader of_items(data::transformed(items, refuse), {.batch_size = 2, .workers = workers});
    CHECK(received(of_items) == 1);
    auto collate = [&](std::vector<int> batch) {
      for (int item : batch) refuse(item);
      return batch.size();
    };
    data::Loader of_batches(items, collate, {.batch_size = 2, .workers = workers});
    CHECK(received(of_batches) == 1);
    data::Loader of_lengths(items, {.batch_size = 2,
                                    .workers = workers,
                                    .length = [&](int item) { return std::int64_t{refuse(item)}; },
                                    .bucket_batches = 1});
    CHECK(received(of_lengths) == 1);
    data::Loader of_own(data::transformed(items, [](int item) { return item == 3 ? throw Enough() : item; }),
                        {.workers = workers});
    CHECK_THROWS_AS(epoch_of(of_own), Enough);
  }
}

TEST_CASE("no more batches are made ahead than the queue has room for") {
  std::vector<int> items = numbers(100);
  std::atomic<int> made = 0;
  auto counted = data::transformed(items, [&](int item) {
    ++made;
    return item;
  });
  for (std::int64_t prefetch : {1, 3}) {
    made = 0;
    data::Loader loader(counted, {.batch_size = 1, .workers = 4, .prefetch = prefetch});
    int received = 0;
    for (auto& batch : loader) {
      CHECK(batch.size() == 1);
      ++received;
      if (received < 5) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      CHECK(made <= received + prefetch);
      if (received == 20) break;
    }
  }
}

TEST_CASE("a loader that is destroyed in the middle of an epoch ends its workers soon") {
  std::vector<int> items = numbers(100'000);
  auto slow_later = data::transformed(items, [](int item) {
    if (item >= 20'000) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return item;
  });
  auto slow_length = [](const int& item) {
    if (item >= 20'000) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return std::int64_t{item};
  };
  auto start = std::chrono::steady_clock::now();
  {
    data::Loader making(slow_later, {.batch_size = 20'000, .workers = 3});  // 2 s a batch
    data::Loader measuring(items, {.batch_size = 200, .workers = 3, .length = slow_length});
    making.begin();
    measuring.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1500));
}

TEST_CASE("the batches of workers may hold tensors that the caller frees") {
  std::vector<int> items = numbers(400);
  auto tensors = data::transformed(items, [](int item) { return full({16}, item); });
  data::Loader loader(tensors, [](std::vector<Tensor> batch) { return stack(batch); }, {.batch_size = 8, .workers = 3});
  double total = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const Tensor& batch : loader) total += sum(batch).item();
  CHECK(total == 3 * 16 * 399 * 200);
}

TEST_CASE("a loader names the sources and the indices of the batch that was received last") {
  struct Item {
    int value;
    data::Source source;
  };
  std::vector<Item> items;
  for (int i = 0; i < 5; ++i) items.push_back({i, data::Source("a.txt", i + 1)});
  data::Loader loader(data::transformed(items, [](const Item& item) { return item.value; }), {.batch_size = 2});
  for (auto& batch : loader) {
    CHECK(batch == std::vector<int>{0, 1});
    CHECK(loader.indices() == std::vector<std::int64_t>{0, 1});
    CHECK(data::to_string(loader.sources()) == "a.txt:1, a.txt:2");
    break;
  }
}

TEST_CASE("a state of another dataset, of other options or without meaning is refused, and changes nothing") {
  std::vector<int> items = numbers(20), others = numbers(21);
  data::LoaderOptions<int> options{.batch_size = 4, .shuffle = true, .seed = 5};
  data::Loader loader(items, options);
  std::vector<NamedTensor> state = loader.state();
  auto refusal = [&](data::Loader<int>& other, const std::vector<NamedTensor>& wrong) {
    return error_of<Error>([&] { other.load_state(wrong); });
  };
  data::Loader larger(others, options);
  CHECK_THAT(refusal(larger, state), contains("the state is of a dataset of 20 items, not of 21"));
  options.batch_size = 5;
  data::Loader wider(items, options);
  CHECK_THAT(refusal(wider, state), contains("the state is of a loader with batch_size 4, not 5"));
  auto with = [&](const std::string& name, std::int64_t value) {
    std::vector<NamedTensor> changed = state;
    for (NamedTensor& named : changed)
      if (named.name == name) named.tensor = tensor({value});
    return changed;
  };
  for (const char* name : {"epoch", "window", "batch", "delivered"}) {
    CHECK_FALSE(refusal(loader, with(name, -1)).empty());
    if (name != std::string("epoch")) CHECK_FALSE(refusal(loader, with(name, 1'000'000'000'000)).empty());
  }
  std::vector<NamedTensor> less = state;
  less.pop_back();
  CHECK_THAT(refusal(loader, less), contains("lacks 'most_elements'"));
  std::vector<NamedTensor> more = state;
  more.push_back({"speed", ones({1})});
  CHECK_THAT(refusal(loader, more), contains("'speed' is not known"));
  CHECK(loader.position() == 0);
  CHECK(epoch_of(loader).size() == 5);
  // The seed is a part of the state.
  options.batch_size = 4;
  options.seed = 6;
  data::Loader reseeded(items, options), original(items, {.batch_size = 4, .shuffle = true, .seed = 5});
  reseeded.load_state(state);
  CHECK(epoch_of(reseeded) == epoch_of(original));
}

TEST_CASE("a state goes to loaders of its order only, whatever option differs") {
  std::vector<int> items = numbers(20);
  auto length = [](const int& item) { return std::int64_t{item % 7 + 1}; };
  using Options = data::LoaderOptions<int>;
  struct Case {
    Options of_state, of_loader;
    std::string refusal;
  };
  std::vector<Case> cases{
      {{.batch_size = 1}, {.batch_size = 2}, "batch_size 1, not 2"},
      {{}, {.shuffle = true}, "shuffle 0, not 1"},
      {{.shuffle = true}, {}, "shuffle 1, not 0"},
      {{.batch_size = 3}, {.batch_size = 3, .drop_last = true}, "drop_last 0, not 1"},
      {{.batch_size = 3, .drop_last = true}, {.batch_size = 3}, "drop_last 1, not 0"},
      {{.length = length, .bucket_batches = 3}, {.length = length, .bucket_batches = 5}, "bucket_batches 3, not 5"},
      {{.length = length, .bucket_batches = 3}, {.length = length, .bucket_batches = 1}, "bucket_batches 3, not 1"},
      {{.length = length, .bucket_batches = 1}, {.length = length, .bucket_batches = 3}, "bucket_batches 1, not 3"},
      {{.length = length, .bucket_batches = 3}, {}, "bucket_batches 3, not 0"},
      {{}, {.length = length, .bucket_batches = 3}, "bucket_batches 0, not 3"},
      {{.length = length, .most_elements = 1}, {.length = length}, "most_elements 1, not 0"},
      {{.length = length}, {.length = length, .most_elements = 1}, "most_elements 0, not 1"},
      // Windows of one batch are those of an order without lengths.
      {{.length = length, .bucket_batches = 1}, {}, ""},
      {{}, {.length = length, .bucket_batches = 1}, ""},
      {{.workers = 2, .prefetch = 3}, {.workers = 1, .prefetch = 4}, ""},
  };
  for (const Case& one : cases) {
    data::Loader from(items, one.of_state), to(items, one.of_loader);
    from.begin();
    std::vector<NamedTensor> state = from.state();
    std::string said = error_of<Error>([&] { to.load_state(state); });
    CAPTURE(one.refusal, said);
    CHECK(said.empty() == one.refusal.empty());
    CHECK_THAT(said, contains(one.refusal));
    CHECK(to.position() == (one.refusal.empty() ? from.position() : 0));
  }
}

TEST_CASE("options out of range are refused, and so is a dataset whose size changes") {
  std::vector<int> items = numbers(20);
  auto refusal = [&](data::LoaderOptions<int> options) {
    return error_of<Error>([&] { data::Loader loader(items, std::move(options)); });
  };
  CHECK_THAT(refusal({.batch_size = 0}), contains("batch_size is 0") && contains("loader_test.cpp:"));
  CHECK_THAT(refusal({.workers = -1}), contains("workers is -1"));
  CHECK_THAT(refusal({.prefetch = -1}), contains("prefetch is -1"));
  CHECK_THAT(refusal({.most_elements = 5}), contains("set .length or .lengths, too"));
  auto length = [](const int&) { return std::int64_t{1}; };
  CHECK_THAT(refusal({.length = length, .lengths = std::vector<std::int64_t>{1}}), contains("set one of them"));
  CHECK_THAT(refusal({.lengths = std::vector<std::int64_t>{1}}), contains("there are 1 lengths for"));
  CHECK_THAT(refusal({.length = length, .bucket_batches = 0}), contains("bucket_batches is 0"));
  CHECK_THAT(refusal({.drop_last = true, .length = length, .most_elements = 5}), contains("leave out .drop_last"));
  data::Loader negative(items, {.length = [](const int&) { return std::int64_t{-1}; }});
  CHECK_THAT(error_of<Error>([&] { epoch_of(negative); }), contains("the length of item 0 is -1"));
  data::Loader loader(items);
  items.push_back(5);
  CHECK_THAT(error_of<Error>([&] { epoch_of(loader); }), contains("had 20 items when the loader was made, and has 21"));
}

TEST_CASE("an empty dataset has epochs without batches") {
  std::vector<int> none;
  for (int workers : {0, 2}) {
    data::Loader loader(none, {.shuffle = true, .workers = workers});
    CHECK(epoch_of(loader).empty());
    CHECK(loader.epoch() == 1);
    CHECK(loader.batches() == 0);
  }
  std::vector<int> few = numbers(3);
  data::Loader dropped(few, {.batch_size = 4, .drop_last = true});
  CHECK(epoch_of(dropped).empty());
}
