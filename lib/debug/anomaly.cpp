#include <reel/debug/anomaly.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <typeinfo>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/reduce.h>

#include "../core/extended_error.h"
#include "../core/op_error.h"
#include "../dispatch/invoke.h"
#include "../kernels/kernel_table.h"
#include "element_index.h"
#include "listener_scope.h"

namespace reel::debug {

using namespace detail;

namespace {

bool shares_elements(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.body().storage == b.body().storage;
}

// Returns true if the output is a view of existing elements. The output of an op in place is its input, and not a view.
bool is_view(const Call& call, const Tensor& output) {
  if (!call.specs.empty()) return false;
  bool shares = false;
  for (const Tensor* input : call.inputs) {
    if (input->is(output)) return false;
    shares |= shares_elements(*input, output);
  }
  return shares;
}

// "3 NaN and 1 Inf"
std::string counts_text(const TensorStatistics& statistics) {
  std::string text = statistics.nans ? fmt::format("{} NaN", statistics.nans) : std::string();
  if (statistics.infinities) text += fmt::format("{}{} Inf", text.empty() ? "" : " and ", statistics.infinities);
  return text;
}

std::int64_t first_place(const TensorStatistics& statistics, bool infinities) {
  if (!infinities || statistics.first_infinity < 0) return statistics.first_nan;
  return statistics.first_nan < 0 ? statistics.first_infinity
                                  : std::min(statistics.first_nan, statistics.first_infinity);
}

}  // namespace

class AnomalyScope::Detector : public ListenerScope {
 public:
  explicit Detector(AnomalyOptions options) : ListenerScope(detail::context()), options_(options) {}

  void finished(const Call& call, Location where) override {
    pass_on(call, where);
    // An op without inputs creates the user's own values.
    if (call.inputs.empty()) return;
    if (call.op.writes_part) return look_at_parts(call, where);
    for (std::size_t i = 0; i < call.outputs.size(); ++i)
      if (!(call.op.hidden_outputs >> i & 1) && !is_view(call, call.outputs[i]) && is_wrong(call.outputs[i]) &&
          !is_masked(call, call.outputs[i]))
        report(call, i, where);
  }

 private:
  bool is_wrong(const Tensor& x) const {
    return x.defined() && is_floating(x.dtype()) && kernels(x.device()).has_anomaly(x.body(), options_.infinities);
  }
  bool is_wrong(const TensorStatistics& statistics) const { return first_place(statistics, options_.infinities) >= 0; }

  // Returns true if the only infinities are −∞ that an operand has, too: a mask that the program or a layer made, since an
  // op that gives −∞ of finite operands is reported itself.
  bool is_masked(const Call& call, const Tensor& output) const {
    if (statistics(output).nans > 0) return false;
    if (const OpInfo* differentiated = context().differentiating) return is_exponent(call.op, *differentiated);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    NoRecord pause;
    Unobserved ops(context());
    auto holds = [](const Tensor& x, double value) {
      return x.defined() && is_floating(x.dtype()) && any(equal(x, value)).item() != 0;
    };
    return !holds(output, infinity) &&
           std::ranges::any_of(call.inputs, [&](const Tensor* input) { return holds(*input, -infinity); });
  }

  // Returns true for the differences of which these gradients take the exponential or the sigmoid: they are infinite
  // where the forward op had a masked operand, and what is computed from them is finite.
  static bool is_exponent(const OpInfo& op, const OpInfo& differentiated) {
    constexpr std::array<std::string_view, 3> of_exponentials{"logaddexp", "logcumsumexp", "logsumexp"},
        differences{"neg", "sub", "where"};
    return std::ranges::find(of_exponentials, differentiated.name) != of_exponentials.end() &&
           std::ranges::find(differences, op.name) != differences.end();
  }

  // For ops that write a part: checks the written values only, as the other elements may be uninitialised.
  void look_at_parts(const Call& call, Location where) const {
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
      if (is_wrong(*call.inputs[i])) report(call, 0, where);
  }

  [[noreturn, gnu::cold]] void report(const Call& call, std::size_t number, Location where) const {
    const Tensor& output = call.outputs[number];
    const OpInfo* differentiated = context().differentiating;
    Anomaly anomaly{.op = call.op.name,
                    .gradient_of = differentiated ? differentiated->name : "",
                    .output_index = static_cast<int>(number),
                    .output = statistics(output),
                    .inputs = {}};
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = *call.inputs[i];
      if (!input.defined() || !is_floating(input.dtype())) continue;
      anomaly.inputs.push_back(
          {static_cast<int>(i), input.made_at(), shares_elements(input, output), statistics(input)});
    }
    std::string sentence = sentence_of(anomaly, call.outputs.size()), lines = lines_of(anomaly);
    if (std::string found = whereabouts(detail::context()); !found.empty()) sentence.append("; ").append(found);
    throw AnomalyError(sentence, where, lines, std::move(anomaly));
  }

  std::string sentence_of(const Anomaly& anomaly, std::size_t outputs) const {
    const TensorStatistics& output = anomaly.output;
    std::string text = anomaly.op + ":";
    if (!anomaly.gradient_of.empty()) text += fmt::format(" in the gradient of {},", anomaly.gradient_of);
    text += fmt::format(
        " gave {} among the {} elements of its {} {} {}, the first at {}", counts_text(output), output.shape.numel(),
        outputs > 1 ? fmt::format("output {},", anomaly.output_index) : std::string("result"), to_string(output.shape),
        name_of(output.dtype), index_of(first_place(output, options_.infinities), output.shape));
    bool overwritten = false;
    for (const Anomaly::Input& input : anomaly.inputs) {
      overwritten |= input.overwritten;
      if (!input.overwritten && is_wrong(input.statistics))
        return text + fmt::format("; its input {}, made at {}, already held {}", input.index, to_string(input.made_at),
                                  counts_text(input.statistics));
    }
    if (overwritten) return text;
    return text + fmt::format("; its inputs held {}", options_.infinities ? "finite numbers only" : "no NaN");
  }

  static std::string lines_of(const Anomaly& anomaly) {
    std::string text;
    for (const Anomaly::Input& input : anomaly.inputs)
      text += fmt::format("\n  input {}, made at {}{}: {}", input.index, to_string(input.made_at),
                          input.overwritten ? ", overwritten by the op" : "", to_string(input.statistics));
    return text;
  }

  AnomalyOptions options_;
};

AnomalyScope::AnomalyScope(AnomalyOptions options) : detector_(std::make_unique<Detector>(options)) {
  detail::throw_with_text = [](const Error& error, const std::string& text) {
    if (typeid(error) == typeid(AnomalyError))
      throw AnomalyError({}, error.where(), text, static_cast<const AnomalyError&>(error).anomaly());
  };
}

AnomalyScope::~AnomalyScope() = default;

}  // namespace reel::debug
