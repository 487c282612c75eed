#include <reel/nn/outputs_of.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

OutputCapture::OutputCapture(Module& model, const ModuleNames& names)
    : names_(names.names), where_(names.where), found_(names_.size()) {
  std::vector<std::pair<std::string, const Module*>> known = model.named_modules();
  // In the order of `named_modules`.
  std::vector<Module*> modules;
  model.for_each_module([&](Module& module) { modules.push_back(&module); });
  for (std::size_t i = 0; i < names_.size(); ++i) {
    auto named = std::ranges::find(known, names_[i], &std::pair<std::string, const Module*>::first);
    if (named == known.end())
      fail<Error>("outputs_of", where_, "{} has no module '{}'; named_modules() lists their names", model.type_name(),
                  names_[i]);
    hooks_.push_back(modules[static_cast<std::size_t>(named - known.begin())]->after_forward(
        [this, i](std::span<Tensor> results) { found_[i].push_back(results[0]); }, where_));
  }
}

std::vector<NamedTensor> OutputCapture::results() const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (found_[i].empty()) fail<Error>("outputs_of", where_, "the module '{}' was not called", names_[i]);
    for (const Tensor& result : found_[i]) all.push_back({names_[i], result});
  }
  return all;
}

}  // namespace reel::nn
