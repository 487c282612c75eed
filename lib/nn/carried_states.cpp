#include <reel/nn/carried_states.h>

#include <algorithm>
#include <vector>

#include <reel/ops/create.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

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
  constexpr const char* name = "CarriedStates";
  if (!states.h.defined()) fail<Error>(name, where, "h is an undefined tensor");
  std::vector<std::int64_t> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  if (auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail<Error>(name, where, "the sequence {} comes twice", *twice);
  for (const Tensor* part : {&states.h, &states.c})
    if (part->defined() && (part->rank() != 3 || part->size(1) != std::ssize(ids)))
      fail<ShapeError>(name, where, "the states {} are not (nets, {}, H), one for each sequence", describe(*part),
                       ids.size());
  CallerScope caller(where);
  NoRecord pause;
  auto row_of = [](const Tensor& part, std::int64_t b) {
    return part.defined() ? copy(stop_gradient(select(part, 1, b))) : Tensor();
  };
  for (std::size_t b = 0; b < ids.size(); ++b)
    states_[ids[b]] = {row_of(states.h, static_cast<std::int64_t>(b)), row_of(states.c, static_cast<std::int64_t>(b))};
}

}  // namespace reel::nn
