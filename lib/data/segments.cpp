#include <reel/data/segments.h>

#include <algorithm>
#include <utility>

#include <reel/device.h>
#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"
#include "../optim/state_reader.h"
#include "permutation.h"

namespace reel::data {

using detail::fail;

namespace {

constexpr const char* segments_name = "data::Segments";

}  // namespace

Segments::Segments(std::vector<Tensor> sequences, const SegmentOptions& options, Location where)
    : sequences_(std::move(sequences)), options_(options) {
  auto check_least = [&](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) fail<Error>(segments_name, where, "{} is {}, but must be at least {}", name, value, least);
  };
  check_least("steps", options.steps, 1);
  check_least("streams", options.streams, 1);
  check_least("ahead", options.ahead, 0);
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (!sequences_[i].defined()) fail<Error>(segments_name, where, "the sequence {} is an undefined tensor", i);
    if (sequences_[i].rank() == 0) fail<ShapeError>(segments_name, where, "the sequence {} has no axis of steps", i);
  }
  streams_.resize(static_cast<std::size_t>(std::min(options.streams, std::ssize(sequences_))));
}

// Negative for a sequence that is too short for a target.
std::int64_t Segments::length(std::int64_t id) const {
  return sequences_[static_cast<std::size_t>(id)].size(0) - options_.ahead;
}

std::int64_t Segments::steps() const {
  std::int64_t steps = 0;
  for (std::int64_t id = 0; id < std::ssize(sequences_); ++id) steps += std::max<std::int64_t>(length(id), 0);
  return steps;
}

void Segments::advance() {
  NoRecord pause;
  batch_ = {};
  detail::Permutation order(std::ssize(sequences_), options_.seed, static_cast<std::uint64_t>(epoch_));
  auto id_at = [&](std::int64_t place) { return options_.shuffle ? order[place] : place; };
  std::vector<Tensor> inputs, targets;
  for (Stream& stream : streams_) {
    while (stream.place < 0 && next_ < std::ssize(sequences_)) {
      if (length(id_at(next_)) > 0) stream = {next_, 0};
      ++next_;
    }
    if (stream.place < 0) continue;
    std::int64_t id = id_at(stream.place), begin = stream.step;
    // The sum begin + steps may be too large for an integer.
    std::int64_t end = begin + std::min(options_.steps, length(id) - begin);
    const Tensor& sequence = sequences_[static_cast<std::size_t>(id)];
    inputs.push_back(slice(sequence, 0, begin, end));
    if (options_.ahead > 0) targets.push_back(slice(sequence, 0, begin + options_.ahead, end + options_.ahead));
    batch_.ids.push_back(id);
    batch_.starts.push_back(begin);
    if (end == length(id)) batch_.finished.push_back(id);
    stream = end == length(id) ? Stream{} : Stream{stream.place, end};
  }
  if (inputs.empty()) return start_epoch(epoch_ + 1);
  batch_.x = nn::pack(inputs);
  if (options_.ahead > 0) batch_.y = nn::pack(targets);
  ++position_;
}

void Segments::start_epoch(std::int64_t epoch, Location where) {
  if (epoch < 0) fail<Error>(segments_name, where, "there is no epoch {}; the first one is 0", epoch);
  epoch_ = epoch;
  position_ = next_ = 0;
  std::ranges::fill(streams_, Stream{});
}

std::vector<NamedTensor> Segments::state(Location where) const {
  CallerScope caller(where);
  DeviceGuard on_cpu(cpu);
  std::vector<std::int64_t> places, steps_of_streams;
  for (const Stream& stream : streams_) {
    places.push_back(stream.place);
    steps_of_streams.push_back(stream.step);
  }
  auto entry = [](const char* name, std::int64_t value) { return NamedTensor{name, tensor({value})}; };
  return {entry("seed", static_cast<std::int64_t>(options_.seed)),
          entry("epoch", epoch_),
          entry("position", position_),
          entry("next", next_),
          {"places", tensor(places)},
          {"steps", tensor(steps_of_streams)},
          entry("sequences", std::ssize(sequences_)),
          entry("all_steps", steps()),
          entry("segment_steps", options_.steps),
          entry("streams", options_.streams),
          entry("ahead", options_.ahead),
          entry("shuffle", options_.shuffle)};
}

void Segments::load_state(std::span<const NamedTensor> state, Location where) {
  detail::StateReader reader(segments_name, state, where);
  auto number = [&](const char* name) { return reader.number<std::int64_t>(name); };
  auto check_equal = [&](const char* name, std::int64_t own) {
    if (std::int64_t saved = number(name); saved != own)
      fail<Error>(segments_name, where, "the state is of other sequences or options: its '{}' is {}, not {}", name,
                  saved, own);
  };
  check_equal("sequences", std::ssize(sequences_));
  check_equal("all_steps", steps());
  check_equal("segment_steps", options_.steps);
  check_equal("streams", options_.streams);
  check_equal("ahead", options_.ahead);
  check_equal("shuffle", options_.shuffle);
  SegmentOptions options = options_;
  options.seed = static_cast<std::uint64_t>(number("seed"));
  std::int64_t epoch = number("epoch"), position = number("position"), next = number("next");
  auto places = reader.list<std::int64_t>("places", streams_.size());
  auto steps_of_streams = reader.list<std::int64_t>("steps", streams_.size());
  reader.finish();
  bool fits = epoch >= 0 && position >= 0 && next >= 0 && next <= std::ssize(sequences_);
  detail::Permutation order(std::ssize(sequences_), options.seed, static_cast<std::uint64_t>(epoch));
  std::vector<Stream> streams;
  for (std::size_t i = 0; fits && i < places.size(); ++i) {
    std::int64_t place = places[i], step = steps_of_streams[i];
    fits = place < next && place >= -1 && step >= 0 &&
           (place < 0 ? step == 0 : step < length(options.shuffle ? order[place] : place));
    streams.push_back({place, step});
  }
  std::vector<std::int64_t> taken = places;
  std::erase(taken, -1);
  std::ranges::sort(taken);
  if (!fits || std::ranges::adjacent_find(taken) != taken.end())
    fail<Error>(segments_name, where, "the state's position does not exist in these sequences");
  options_ = options;
  epoch_ = epoch;
  position_ = position;
  next_ = next;
  streams_ = std::move(streams);
}

std::vector<Tensor> parallel_parts(const Tensor& x, std::int64_t count, Location where) {
  if (!x.defined()) fail<Error>("data::parallel_parts", where, "x is an undefined tensor");
  if (count < 1) fail<Error>("data::parallel_parts", where, "count is {}, but must be at least 1", count);
  if (x.rank() == 0 || x.size(0) < count)
    fail<ShapeError>("data::parallel_parts", where, "x, {}, is too short for {} parts", detail::describe(x), count);
  std::int64_t size = x.size(0) / count;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < count; ++i) parts.push_back(slice(x, 0, i * size, (i + 1) * size));
  return parts;
}

}  // namespace reel::data
