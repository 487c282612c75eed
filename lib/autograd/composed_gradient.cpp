#include "../ops/composed_gradient.h"

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/context.h"
#include "../record/tape_list.h"

namespace reel::detail {
namespace {

// While it lives, no tape traces anything: the gradient of an op must not go on to what `truncate` has traced before it, which
// would lead through the op itself.
class Untraced : Immovable {
 public:
  Untraced() : list_(*context().tapes), kept_(list_.exchange_traces({})) {}
  ~Untraced() { list_.exchange_traces(std::move(kept_)); }

 private:
  TapeList& list_;
  std::vector<TapeList::Trace> kept_;
};

}  // namespace

void accumulate_composed(Gradient& g, const std::function<std::vector<Tensor>(std::span<const Tensor>)>& composed) {
  std::vector<Tensor> inputs, sources;
  for (std::size_t i = 0; i < g.input_count(); ++i) {
    Tensor input = g.saved_input(static_cast<int>(i));
    // One input may be computed from another; the gradient that flows between them is not this op's, so each source is
    // a view.
    if (g.wants(i)) sources.emplace_back(input = reshape(input, input.shape()));
    inputs.push_back(std::move(input));
  }
  Untraced untraced;
  Tape tape;
  std::vector<Tensor> outputs = composed(std::span<const Tensor>(inputs));
  Tensor total;
  for (std::size_t k = 0; k < g.output_count(); ++k) {
    if (!g.has_output(k)) continue;
    Tensor part = sum(outputs[k] * g.output(k));
    total = total.defined() ? total + part : part;
  }
  std::vector<Tensor> gradients = tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
  for (std::size_t i = 0, next = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.accumulate(i, std::move(gradients[next++]));
}

}  // namespace reel::detail
