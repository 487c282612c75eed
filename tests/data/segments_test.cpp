#include <reel/data/segments.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include <reel/ops.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

// Sequence i has the numbers 1000 i, 1000 i + 1, …
std::vector<Tensor> sequences_of(const std::vector<std::int64_t>& lengths) {
  std::vector<Tensor> sequences;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    sequences.push_back(arange(1000 * static_cast<std::int64_t>(i), 1000 * static_cast<std::int64_t>(i) + lengths[i]));
  return sequences;
}

// A batch as a list of numbers.
std::vector<std::int64_t> shown(const data::SegmentBatch& batch) {
  std::vector<std::int64_t> all = batch.x.elements.to_vector<std::int64_t>();
  if (batch.y.elements.defined())
    for (std::int64_t target : batch.y.elements.to_vector<std::int64_t>()) all.push_back(target);
  for (const auto* list : {&batch.x.lengths, &batch.ids, &batch.starts, &batch.finished})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

std::vector<std::vector<std::int64_t>> epoch_of(data::Segments& segments) {
  std::vector<std::vector<std::int64_t>> batches;
  for (const auto& batch : segments) batches.push_back(shown(batch));
  return batches;
}

const std::vector<std::int64_t> ragged{7, 3, 0, 10, 1, 5, 4, 8, 2};

}  // namespace

TEST_CASE("streams give the segments of one sequence after another") {
  data::Segments segments(sequences_of({5, 2, 4}), {.steps = 2, .streams = 2});
  std::vector<data::SegmentBatch> batches;
  for (const auto& batch : segments) batches.push_back(batch);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].ids == std::vector<std::int64_t>{0, 1});
  CHECK(batches[0].finished == std::vector<std::int64_t>{1});
  CHECK(batches[0].x.elements.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 1000, 1001});
  CHECK_FALSE(batches[0].y.elements.defined());
  CHECK(batches[1].ids == std::vector<std::int64_t>{0, 2});
  CHECK(batches[1].starts == std::vector<std::int64_t>{2, 0});
  CHECK(batches[2].x.lengths == std::vector<std::int64_t>{1, 2});
  CHECK(batches[2].finished == std::vector<std::int64_t>{0, 2});
  CHECK(segments.epoch() == 1);
}

TEST_CASE("each step of each sequence comes once an epoch, in order, and targets are ahead of it") {
  for (std::int64_t ahead : {0, 1, 3}) {
    for (std::int64_t streams : {1, 3, 20}) {
      data::Segments segments(sequences_of(ragged), {.steps = 3, .streams = streams, .ahead = ahead, .shuffle = true});
      std::map<std::int64_t, std::int64_t> next;
      std::int64_t steps = 0, finished = 0;
      bool in_order = true, fits = true;
      for (const auto& batch : segments) {
        std::vector<Tensor> inputs = batch.x.sequences();
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          auto values = inputs[i].to_vector<std::int64_t>();
          in_order =
              in_order && batch.starts[i] == next[batch.ids[i]] && values[0] == 1000 * batch.ids[i] + batch.starts[i];
          next[batch.ids[i]] += std::ssize(values);
          steps += std::ssize(values);
        }
        if (ahead > 0)
          fits = fits && (batch.y.elements - batch.x.elements).to_vector<std::int64_t>() ==
                             std::vector<std::int64_t>(static_cast<std::size_t>(batch.x.elements.numel()), ahead);
        finished += std::ssize(batch.finished);
      }
      CHECK(in_order);
      CHECK(fits);
      CHECK(steps == segments.steps());
      CHECK(finished == std::ranges::count_if(ragged, [&](std::int64_t length) { return length > ahead; }));
    }
  }
}

TEST_CASE("a state of any position continues with the segments that were not received") {
  data::SegmentOptions options{.steps = 3, .streams = 3, .ahead = 1, .shuffle = true, .seed = 4};
  data::Segments whole(sequences_of(ragged), options);
  auto first = epoch_of(whole), second = epoch_of(whole);
  CHECK(first != second);
  for (std::size_t cut = 0; cut <= first.size(); ++cut) {
    data::Segments before(sequences_of(ragged), options), after(sequences_of(ragged), options);
    std::vector<std::vector<std::int64_t>> received;
    if (cut > 0) {
      for (const auto& batch : before) {
        received.push_back(shown(batch));
        if (received.size() == cut) break;
      }
    }
    after.load_state(before.state());
    CHECK(after.position() == static_cast<std::int64_t>(cut));
    for (const auto& batch : epoch_of(after)) received.push_back(batch);
    CHECK(received == first);
    CHECK(epoch_of(after) == second);
  }
}

TEST_CASE("a state in the middle of the epoch's first sequence continues with its next segment") {
  for (bool shuffle : {false, true}) {
    data::SegmentOptions options{.steps = 2, .streams = 2, .shuffle = shuffle};
    data::Segments whole(sequences_of({7, 7, 7}), options);
    auto expected = epoch_of(whole);
    data::Segments before(sequences_of({7, 7, 7}), options), after(sequences_of({7, 7, 7}), options);
    for (const auto& batch : before) {
      CHECK(shown(batch) == expected[0]);
      break;
    }
    after.load_state(before.state());
    CHECK(epoch_of(after) == std::vector(expected.begin() + 1, expected.end()));
  }
}

TEST_CASE("a state of other sequences or without meaning is refused, and changes nothing") {
  data::Segments segments(sequences_of(ragged), {.steps = 3, .streams = 3});
  for (const auto& batch : segments) {
    CHECK(batch.ids.size() == 3);
    break;
  }
  std::vector<NamedTensor> state = segments.state();
  auto refusal = [&](data::Segments& other, const std::vector<NamedTensor>& wrong) {
    return error_of<Error>([&] { other.load_state(wrong); });
  };
  data::Segments fewer(sequences_of({7, 3}), {.steps = 3, .streams = 3}),
      longer(sequences_of(ragged), {.steps = 4, .streams = 3});
  CHECK_THAT(refusal(fewer, state), contains("its 'sequences' is 9, not 2"));
  CHECK_THAT(refusal(longer, state), contains("its 'segment_steps' is 3, not 4"));
  auto with = [&](const std::string& name, const Tensor& value) {
    std::vector<NamedTensor> changed = state;
    for (NamedTensor& named : changed)
      if (named.name == name) named.tensor = value;
    return changed;
  };
  for (const char* name : {"epoch", "position", "next"})
    CHECK_THAT(refusal(segments, with(name, tensor({std::int64_t{-1}}))), contains("does not exist"));
  CHECK_THAT(refusal(segments, with("next", tensor({std::int64_t{100}}))), contains("does not exist"));
  for (const std::vector<std::int64_t>& places :
       {std::vector<std::int64_t>{0, 0, -1}, {-2, -1, -1}, {8, -1, -1}, {1, -1, -1}})
    CHECK_THAT(refusal(segments, with("places", tensor(places))), contains("does not exist"));
  CHECK_THAT(refusal(segments, with("steps", tensor(std::vector<std::int64_t>{7, 0, 0}))), contains("does not exist"));
  CHECK(segments.position() == 1);
}

TEST_CASE("wrong sequences and options are refused") {
  auto refusal = [](std::vector<Tensor> sequences, data::SegmentOptions options) {
    return error_of<Error>([&] { data::Segments segments(std::move(sequences), options); });
  };
  CHECK_THAT(refusal({}, {.steps = 0}), contains("steps is 0") && contains("segments_test.cpp:"));
  CHECK_THAT(refusal({}, {.streams = 0}), contains("streams is 0"));
  CHECK_THAT(refusal({}, {.ahead = -1}), contains("ahead is -1"));
  CHECK_THAT(refusal({Tensor{}}, {}), contains("sequence 0 is an undefined tensor"));
  CHECK_THAT(refusal({ones({})}, {}), contains("sequence 0 has no axis"));
  data::Segments none({});
  CHECK(epoch_of(none).empty());
  data::Segments all_at_once(sequences_of({5}), {.steps = std::numeric_limits<std::int64_t>::max()});
  CHECK(epoch_of(all_at_once).size() == 1);
}

TEST_CASE("a long sequence becomes parallel parts without its remainder") {
  std::vector<Tensor> parts = data::parallel_parts(arange(11), 3);
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].to_vector<std::int64_t>() == std::vector<std::int64_t>{6, 7, 8});
  CHECK_THAT(error_of<ShapeError>([] { data::parallel_parts(arange(2), 3); }), contains("too short for 3 parts"));
  CHECK_THAT(error_of<Error>([] { data::parallel_parts(arange(2), 0); }), contains("count is 0"));
}
