#include "../../../kernels/loss.h"
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

// max(log x, −100).
std::string cut_log(Writer& w, const std::string& x) {
  return w.node("Max", {w.node("Log", {x}), w.scalar(-100, w.out().dtype())});
}

void write_element_loss(Writer& w) {
  DType dtype = w.out().dtype();
  const auto& [kind, parameter] = w.attributes<ElementLossAttributes>();
  auto sub = [&](const std::string& a, const std::string& b) { return w.node("Sub", {a, b}); };
  auto mul = [&](const std::string& a, const std::string& b) { return w.node("Mul", {a, b}); };
  std::string x = w.in_as(0, dtype), t = w.in_as(1, dtype), one = w.scalar(1, dtype);
  auto softplus = [&](const std::string& z) {
    std::string decay = w.node("Exp", {w.node("Neg", {w.node("Abs", {z})})});
    return w.node("Add", {w.node("Max", {z, w.scalar(0, dtype)}), w.node("Log", {w.node("Add", {one, decay})})});
  };
  switch (static_cast<ElementLoss>(kind)) {
    case ElementLoss::squared: return w.result(mul(sub(x, t), sub(x, t)));
    case ElementLoss::absolute: return w.result(w.node("Abs", {sub(x, t)}));
    case ElementLoss::binary_cross_entropy:
      return w.result(sub(mul(sub(t, one), cut_log(w, sub(one, x))), mul(t, cut_log(w, x))));
    case ElementLoss::logits_cross_entropy:
      return w.result(w.node("Add", {mul(sub(one, t), x), softplus(w.node("Neg", {x}))}));
    case ElementLoss::divergence: {
      std::string none = w.node("Equal", {t, w.scalar(0, dtype)});
      return w.result(mul(t, sub(w.node("Log", {w.node("Where", {none, one, t})}), x)));
    }
    default: break;
  }
  std::string e = sub(x, t),
              cut = w.node("Min", {w.node("Max", {e, w.scalar(-parameter, dtype)}), w.scalar(parameter, dtype)});
  std::string losses = mul(cut, sub(e, mul(cut, w.scalar(0.5, dtype))));
  bool divides = static_cast<ElementLoss>(kind) == ElementLoss::smooth_l1;
  w.result(divides ? w.node("Div", {losses, w.scalar(parameter, dtype)}) : losses);
}

}  // namespace

std::span<const Operator> loss_operators() {
  static constexpr Operator table[] = {{.ops = "cross_entropy", .write = write_cross_entropy},
                                       {.ops = "nll_loss", .write = write_nll_loss},
                                       {.ops = "mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy "
                                               "binary_cross_entropy_with_logits kl_div",
                                        .write = write_element_loss}};
  return table;
}

}  // namespace reel::io::onnx
