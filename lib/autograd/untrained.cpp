#include "untrained.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "../core/warning.h"

namespace reel::detail {
namespace {

LeafTraining& training_of(const Tensor& parameter) { return parameter.body().leaf->training; }
bool is_held(const Tensor& parameter) { return training_of(parameter).optimisers > 0; }
std::uint32_t storage_id(const Tensor& parameter) {
  return parameter.body().storage->number.load(std::memory_order_relaxed);
}
std::uint32_t version_of(const Tensor& parameter) {
  return parameter.body().storage->version.load(std::memory_order_relaxed);
}

// One backward is not enough evidence: code that reads the gradient by hand, or is about to make an optimiser, needs no
// warning. A parameter is untrained only if a step has updated others and left it unchanged.
bool was_passed_over(const Tensor& parameter, std::span<const Tensor> parameters) {
  const LeafTraining& training = training_of(parameter);
  if (training.witness == 0 || training.own_version != version_of(parameter)) return false;
  return std::ranges::any_of(parameters, [&](const Tensor& other) {
    return storage_id(other) == training.witness && version_of(other) != training.witness_version;
  });
}

std::string describe_parameter(const Tensor& parameter) {
  const std::string& name = parameter.body().leaf->name;
  return fmt::format("\n  {}{}, made at {}", name.empty() ? "" : "'" + name + "', ", describe(parameter),
                     to_string(parameter.made_at()));
}

}  // namespace

void report_untrained(std::span<const Tensor> parameters) {
  std::vector<Tensor> found;
  {
    std::lock_guard lock(gradient_mutex());
    auto witness = std::ranges::find_if(parameters, is_held);
    if (witness == parameters.end()) return;
    for (const Tensor& parameter : parameters) {
      LeafTraining& training = training_of(parameter);
      if (is_held(parameter) || training.reported) continue;
      if (was_passed_over(parameter, parameters)) {
        training.reported = true;
        found.push_back(parameter);
      } else if (training.witness == 0 || training.own_version != version_of(parameter)) {
        training.witness = storage_id(*witness);
        training.witness_version = version_of(*witness);
        training.own_version = version_of(parameter);
      }
    }
  }
  if (found.empty()) return;
  warn([&] {
    std::string text =
        "parameters get gradients, but no optimiser holds them, while one trains others of the same loss; give them to "
        "it: a layer is registered as a member with its module and a name, as in nn::Linear layer{*this, \"layer\", 2, "
        "3}, so that parameters() has its own, or freeze them with requires_grad(false):";
    for (const Tensor& parameter : found) text += describe_parameter(parameter);
    return text;
  });
}

}  // namespace reel::detail
