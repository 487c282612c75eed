#include "../../../ops/loss/attributes.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

// −y_n,t_n for logarithms of probabilities y (N, C), 0 where the target is ignored.
void write_chosen(Writer& w, const std::string& logarithms) {
  std::string targets = w.in_as(1, i64);
  std::string ignored = w.node("Equal", {targets, w.integer(w.attributes<IgnoreAttributes>().ignored)});
  std::string known = w.node("Where", {ignored, w.integer(0), targets});
  std::string chosen = w.node("GatherElements", {logarithms, w.node("Unsqueeze", {known, w.integers({1})})},
                              {attribute("axis", std::int64_t{1})});
  std::string losses = w.node("Neg", {w.node("Squeeze", {chosen, w.integers({1})})});
  std::string y = w.node("Where", {ignored, w.scalar(0, w.out().dtype()), losses});
  w.result(w.out().rank() == w.tensor(1).rank() ? y : w.reshape(y, w.out_shape()));
}

void write_cross_entropy(Writer& w) {
  w.refuse_output(1, "the exponents of a cross_entropy");
  write_chosen(w, w.node("LogSoftmax", {w.in_as(0, w.out().dtype())}, {attribute("axis", std::int64_t{1})}));
}

void write_nll_loss(Writer& w) { write_chosen(w, w.in_as(0, w.out().dtype())); }

}  // namespace

std::span<const Operator> loss_operators() {
  static constexpr Operator table[] = {{.ops = "cross_entropy", .write = write_cross_entropy},
                                       {.ops = "nll_loss", .write = write_nll_loss}};
  return table;
}

}  // namespace reel::io::onnx
