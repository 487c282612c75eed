#include <reel/nn/cells.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/random.h>

#include "../../core/op_error.h"

namespace reel::detail {

Tensor residual(const Tensor& x, const Tensor& y) {
  if (x.shape() != y.shape())
    fail<ShapeError>("ResidualCell", {}, "the cell's output {} cannot be added to its input {}", describe(y),
                     describe(x));
  return x + y;
}

Tensor dropped(const Tensor& x, double probability, bool training) {
  return training && probability > 0 ? dropout(x, {.probability = probability}) : x;
}

void check_probability(const char* name, double probability, Location where) {
  if (!(probability >= 0 && probability <= 1))
    fail<Error>(name, where, "the probability {} is not in [0, 1]", probability);
}

void check_stack(std::size_t cells, std::size_t states) {
  if (cells == 0) fail<Error>("StackedCells", {}, "it has no cells; add some with push_back");
  if (states != cells) fail<Error>("StackedCells", {}, "{} states were given for {} cells", states, cells);
}

}  // namespace reel::detail
