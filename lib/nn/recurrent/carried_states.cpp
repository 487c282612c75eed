#include <reel/nn/carried_states.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <reel/device.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* carried_name = "CarriedStates";

// The id and the part of a name such as "7.h"; throws for another one.
std::pair<std::int64_t, char> split_state_name(const std::string& name, Location where) {
  std::int64_t id = 0;
  const char *begin = name.data(), *last = begin + name.size();
  auto [end, error] = std::from_chars(begin, last, id);
  std::string_view rest(end, static_cast<std::size_t>(last - end));
  if (error != std::errc() || (rest != ".h" && rest != ".c"))
    fail<Error>(carried_name, where, "the state's {} is not known here", shown(name));
  return {id, rest[1]};
}

}  // namespace

LSTMState CarriedStates::of(std::span<const std::int64_t> ids, Location where) const {
  auto known = std::ranges::find_if(ids, [&](std::int64_t id) { return states_.contains(id); });
  if (known == ids.end()) return {};
  CallerScope caller(where);
  const LSTMState& like = states_.at(*known);
  LSTMState initial{zeros_like(like.h), like.c.defined() ? zeros_like(like.c) : Tensor()};
  std::vector<Tensor> h, c;
  for (std::int64_t id : ids) {
    auto found = states_.find(id);
    const LSTMState& state = found == states_.end() ? initial : found->second;
    h.push_back(state.h);
    c.push_back(state.c);
  }
  return {stack(h, 1), like.c.defined() ? stack(c, 1) : Tensor()};
}

void CarriedStates::keep(std::span<const std::int64_t> ids, const LSTMState& states, Location where) {
  if (!states.h.defined()) fail<Error>(carried_name, where, "h is an undefined tensor");
  std::vector<std::int64_t> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  if (auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail<Error>(carried_name, where, "the sequence {} comes twice", *twice);
  for (const Tensor* part : {&states.h, &states.c})
    if (part->defined() && (part->rank() != 3 || part->size(1) != std::ssize(ids)))
      fail<ShapeError>(carried_name, where, "the states {} are not (nets, {}, H), one for each sequence",
                       describe(*part), ids.size());
  CallerScope caller(where);
  NoRecord pause;
  auto row_of = [](const Tensor& part, std::int64_t b) {
    return part.defined() ? copy(stop_gradient(select(part, 1, b))) : Tensor();
  };
  for (std::size_t b = 0; b < ids.size(); ++b)
    states_[ids[b]] = {row_of(states.h, static_cast<std::int64_t>(b)), row_of(states.c, static_cast<std::int64_t>(b))};
}

std::vector<NamedTensor> CarriedStates::state() const {
  std::vector<NamedTensor> state;
  for (const auto& [id, kept] : states_) {
    state.push_back({fmt::format("{}.h", id), kept.h});
    if (kept.c.defined()) state.push_back({fmt::format("{}.c", id), kept.c});
  }
  return state;
}

void CarriedStates::load_state(std::span<const NamedTensor> state, Location where) {
  CallerScope caller(where);
  NoRecord pause;
  std::map<std::int64_t, LSTMState> states;
  for (const NamedTensor& named : state) {
    auto [id, part] = split_state_name(named.name, where);
    if (!named.tensor.defined())
      fail<Error>(carried_name, where, "the state's '{}' is an undefined tensor", named.name);
    if (named.tensor.rank() != 2)
      fail<ShapeError>(carried_name, where, "the state's '{}', {}, is not (nets, H)", named.name,
                       describe(named.tensor));
    LSTMState& one = states[id];
    // Snapshots have their tensors on the CPU.
    bool moves = named.tensor.device() == cpu && default_device() != cpu;
    (part == 'h' ? one.h : one.c) = moves ? to(named.tensor, default_device()) : copy(named.tensor);
  }
  for (const auto& [id, one] : states)
    if (!one.h.defined()) fail<Error>(carried_name, where, "the state has '{}.c', but no '{}.h'", id, id);
  states_ = std::move(states);
}

}  // namespace reel::nn
