#include <reel/nn.h>
#include <reel/no_record.h>
#include <reel/ops.h>
#include <reel/random.h>
#include <reel/threads.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "handles.h"
#include "plugins.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr int thread_total = 4;
// The requests of all threads together; 10⁵ with REEL_ENDURANCE=1.
const int request_count = std::getenv("REEL_ENDURANCE") ? 100'000 : 1'000;

// Words, their context by a recurrent layer and by attention, and scores.
struct Tagger : nn::Module {
  nn::Embedding embedding{*this, "embedding", 50, 32};
  nn::LSTM lstm{*this, "lstm", 32, 48};
  nn::TransformerEncoderLayer encoder{*this, "encoder", 48, 4, {.feed_forward = 64}};
  nn::Linear output{*this, "output", 48, 7};

  // words: (T, N), i64.
  Tensor operator()(const Tensor& words) const {
    Tensor h = lstm(embedding(words)).output;
    return log_softmax(output(transpose(encoder(transpose(h, 0, 1)), 0, 1)));
  }
};

struct Image : nn::Module {
  nn::Conv2d first{*this, "first", 1, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 8};
  nn::Dropout dropout{*this, "dropout", 0.5};
  nn::Linear output{*this, "output", 8 * 4 * 4, 5};

  // x: (N, 1, 8, 8).
  Tensor operator()(const Arg& x) const { return output(dropout(flatten(max_pool2d(relu(norm(first(x))), 2), 1))); }
};

struct Request {
  Tensor input;
  std::vector<char> expected;
};

std::vector<char> bytes_of(const Tensor& x) {
  Tensor y = contiguous(x);
  const auto* first = reinterpret_cast<const char*>(y.data<float>());
  return {first, first + y.numel() * 4};
}

using Forward = std::function<Tensor(const Tensor&)>;

// The requests whose result from one of several threads differs in any bit from that of a single thread.
int differences(const Forward& forward, const std::vector<Request>& requests, unsigned seed) {
  std::atomic<int> wrong = 0;
  std::latch start(thread_total);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < thread_total; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(seed + t);
      start.arrive_and_wait();
      NoRecord pause;
      for (int i = 0; i < request_count / thread_total; ++i) {
        const Request& request = requests[random() % requests.size()];
        if (bytes_of(forward(request.input)) != request.expected) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

// Requests of the given numbers of rows, and what `reference` makes of them on this thread.
std::vector<Request> requests_for(const Forward& reference, const std::function<Tensor(std::int64_t rows)>& make,
                                  const std::vector<std::int64_t>& rows) {
  NoRecord pause;
  std::vector<Request> requests;
  for (int i = 0; i < 24; ++i) {
    Tensor input = make(rows[static_cast<std::size_t>(i) % rows.size()]);
    requests.push_back({input, bytes_of(reference(input))});
  }
  return requests;
}

// A model of its own for the threads, equal to the reference, which makes its first call on all threads at once.
template <class Model>
void check_model(const std::function<Tensor(std::int64_t rows)>& make) {
  static unsigned seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  manual_seed(seed);
  Model reference;
  reference.eval();
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{4}, {1, 2, 3, 8, 17, 40}}) {
    Model model = nn::clone(reference);
    auto requests = requests_for([&](const Tensor& x) { return reference(x); }, make, rows);
    CHECK(differences([&](const Tensor& x) { return model(x); }, requests, seed) == 0);
  }
}

}  // namespace

TEST_CASE(
    "four threads that call one tagger get to the bit what one thread gets, with equal and with changing batches") {
  check_model<Tagger>([](std::int64_t rows) { return randint(0, 50, {5 + rows % 4, rows}); });
}

TEST_CASE(
    "four threads that call one convnet get to the bit what one thread gets, with equal and with changing batches") {
  check_model<Image>([](std::int64_t rows) { return randn({rows, 1, 8, 8}); });
}

TEST_CASE("four threads of C that run one plugin's model get to the bit what one thread gets") {
  ModelHandle model = load_model(classifier_plugin);
  REQUIRE(model);
  auto run = [&](const Tensor& x) {
    const std::int64_t sizes[] = {x.size(0), 2};
    reel_tensor *input = nullptr, *result = nullptr;
    std::size_t count = 0;
    auto bytes = static_cast<std::size_t>(x.numel()) * sizeof(float);
    if (reel_tensor_create(REEL_F32, 2, sizes, x.data<float>(), bytes, &input) != REEL_OK) return Tensor();
    TensorHandle owned(input);
    const reel_tensor* inputs[] = {input};
    if (reel_model_run(model.get(), inputs, 1, &result, 1, &count) != REEL_OK) return Tensor();
    TensorHandle freed(result);
    const auto* values = static_cast<const float*>(reel_tensor_data(result));
    return tensor(std::vector<float>(values, values + x.numel()), x.shape());
  };
  auto requests = requests_for(run, [](std::int64_t rows) { return rand({rows, 2}); }, {1, 2, 3, 8, 17, 40});
  CHECK(differences(run, requests, 5) == 0);
}
