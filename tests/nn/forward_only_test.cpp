#include <reel/reel.h>

#include "catch.h"
#include "core/context.h"
#include "record/tape_list.h"

using namespace reel;

namespace {

struct Tagger : nn::Module {
  nn::Embedding embedding{*this, "embedding", 20, 8};
  nn::LSTMCell cell{*this, "cell", 8, 16};
  nn::Linear output{*this, "output", 16, 3};

  Tensor operator()(const Tensor& words) const {
    Tensor x = embedding(words);
    nn::LSTMState state = cell.initial_state(x.size(1));
    for (int t = 0; t < x.size(0); ++t) state = cell(select(x, 0, t), state);
    return log_softmax(output(relu(state.h)));
  }
};

std::size_t bytes_of_tensors() { return memory_statistics().live_bytes; }

}  // namespace

TEST_CASE("outside a tape a model's forward keeps no bookkeeping") {
  Tagger model;
  Tensor words = reshape(arange(14) % 20, {7, 2});
  model(words);  // packs the parameters of products
  const detail::TapeList& list = *detail::context().tapes;
  std::uint64_t epoch = list.epoch();
  std::size_t before = bytes_of_tensors(), capacity = list.capacity();
  {
    Tensor scores = model(words);
    CHECK(scores.shape() == Shape{2, 3});
    CHECK(list.entry_count() == 0);
    CHECK_FALSE(list.is_live(scores.body()));
    CHECK(scores.body().epoch.load() == 0);
    // Only the result is alive.
    CHECK(bytes_of_tensors() - before <= 1024);
  }
  CHECK(bytes_of_tensors() == before);
  CHECK(list.capacity() == capacity);
  CHECK(list.epoch() == epoch);
}

TEST_CASE("a forward under NoRecord keeps no bookkeeping on the tape around it") {
  Tagger model;
  Tensor words = reshape(arange(14) % 20, {7, 2});
  Tape tape;
  model(words);
  std::size_t entries = tape.size(), bytes = tape.bytes(), before = bytes_of_tensors();
  {
    NoRecord pause;
    model(words);
  }
  CHECK(tape.size() == entries);
  CHECK(tape.bytes() == bytes);
  CHECK(bytes_of_tensors() == before);
}

TEST_CASE("a forward gives the same outside a tape and on one, to the bit") {
  Tagger model;
  Tensor words = reshape(arange(14) % 20, {7, 2}), plain = model(words);
  Tape tape;
  CHECK(model(words).to_vector<float>() == plain.to_vector<float>());
}
