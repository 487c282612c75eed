#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// The op's own sizes; operands only tell the dtype.
std::vector<std::int64_t> sizes(Given given) { return given.integers("shape"); }

}  // namespace

void add_create_peers(Peers& peers) {
  peers["zeros"] = [](Tensors x, Given given) { return at::zeros(sizes(given), x[0].options()); };
  peers["ones"] = [](Tensors x, Given given) { return at::ones(sizes(given), x[0].options()); };
  peers["full"] = [](Tensors x, Given given) { return at::full(sizes(given), 3, x[0].options()); };
  peers["zeros_like"] = [](Tensors x, Given) { return at::zeros_like(x[0]); };
  peers["ones_like"] = [](Tensors x, Given) { return at::ones_like(x[0]); };
  peers["full_like"] = [](Tensors x, Given) { return at::full_like(x[0], -3); };
  peers["arange"] = [](Tensors x, Given given) {
    Attributes::Numbers numbers = given.numbers("numbers");
    return at::arange(numbers[0], numbers[1], numbers[2], x[0].options());
  };
  peers["linspace"] = [](Tensors x, Given given) {
    Attributes::Numbers numbers = given.numbers("numbers");
    return at::linspace(numbers[0], numbers[1], static_cast<std::int64_t>(numbers[2]), x[0].options());
  };
  peers["logspace"] = [](Tensors, Given given) {
    return at::logspace(given.number("start"), given.number("stop"), given.integer("count"), given.number("base"),
                        at::kFloat);
  };
  // libtorch's have no diagonal, and tri has no peer.
  peers["eye"] = [](Tensors x, Given given) {
    std::vector<std::int64_t> shape = given.integers("sizes");
    at::Tensor ones = at::ones(shape, x[0].options());
    return ones.triu(given.integer("diagonal")).tril(given.integer("diagonal"));
  };
  peers["tri"] = [](Tensors x, Given given) {
    return at::ones(given.integers("sizes"), x[0].options()).tril(given.integer("diagonal"));
  };
  peers["one_hot"] = [](Tensors x, Given given) {
    return at::one_hot(x[0].to(at::kLong), given.integer("classes")).to(x[1].scalar_type());
  };
}

}  // namespace reel_test
