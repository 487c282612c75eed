#include <reel/debug/check.h>

#include <reel/debug/statistics.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "element_index.h"

namespace reel::debug {

using namespace detail;

namespace {

constexpr const char* check_name = "debug::check";

// One line for a tensor: its statistics, and its element at the place where the condition is false.
std::string line_of(const Tensor& x, std::size_t number, const Shape& shape, std::int64_t place) {
  std::string text = fmt::format("\n  tensor {}, made at {}: {}", number, to_string(x.made_at()),
                                 to_string(statistics(x, x.made_at())));
  if (x.shape() == shape && shape.rank() > 0 && place >= 0)
    text += fmt::format(", at {}: {}", index_of(place, shape), to_string(slice(flatten(x), 0, place, place + 1)));
  return text;
}

}  // namespace

void check_all(const Arg& condition, std::span<const Tensor* const> tensors) {
  Context& context = detail::context();
  Location where = context.call_site(condition.location());
  NoRecord pause;
  std::int64_t first = -1, failures = 0;
  Shape shape;
  if (condition.is_tensor()) {
    Tensor truth = to_if_needed(to(tensor_of(check_name, condition), boolean), cpu);
    shape = truth.shape();
    truth = contiguous(truth);
    wait_for(truth, where);
    const bool* values = truth.body().as<bool>();
    for (std::int64_t i = 0; i < truth.numel(); ++i)
      if (!values[i] && failures++ == 0) first = i;
  } else {
    failures = condition.number() == 0;
  }
  for (const Tensor* x : tensors) tensor_of(check_name, Arg(*x, where));
  if (failures == 0) return;
  std::string lines;
  for (std::size_t i = 0; i < tensors.size(); ++i) lines += line_of(*tensors[i], i, shape, first);
  std::string sentence = first < 0 || shape.rank() == 0
                             ? std::string("the condition is false")
                             : fmt::format("the condition is false for {} of the {} elements of {}, the first at {}",
                                           failures, shape.numel(), to_string(shape), index_of(first, shape));
  throw CheckError(refusal(check_name, where, sentence), where, lines);
}

}  // namespace reel::debug
