#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/named_tensor.h>
#include <reel/nn/functional_call.h>
#include <reel/nn/module.h>

namespace reel::nn {

/// Names of sub-modules, with the location of the caller.
struct ModuleNames {
  std::vector<std::string> names;  ///< as `named_modules` lists them; "" is the module itself
  Location where;                  ///< for errors

  /// Names one by one.
  ModuleNames(std::initializer_list<std::string_view> names, Location where = Location::here())
      : names(names.begin(), names.end()), where(where) {}
  /// A list of names.
  ModuleNames(std::vector<std::string> names, Location where = Location::here())
      : names(std::move(names)), where(where) {}
};

/// While it lives, collects the results of the calls of some sub-modules of a model.
class OutputCapture : detail::Immovable {
 public:
  /// Observes the sub-modules with these names. Throws: Error for a name that the model has not, and for a module that
  /// only contains others, such as ModuleList.
  OutputCapture(Module& model, const ModuleNames& names);

  /// The results so far, in the order of the names, those of several calls of one module in the order of the calls.
  /// Throws: Error if one of the modules was not called.
  std::vector<NamedTensor> results() const;

 private:
  std::vector<std::string> names_;
  Location where_;
  std::vector<std::vector<Tensor>> found_;
  std::vector<ModuleHook> hooks_;
};

/// Calls model(inputs…) and returns the results of some of its sub-modules, in the order of their names; of one that is
/// called several times, each result in the order of the calls:
///
///     std::vector<NamedTensor> features = nn::outputs_of(model, {"hidden", "output"}, x);
///     Tensor hidden = features[0].tensor;
///
/// The result of a module that returns several tensors, such as LSTM, is the first of them. The results are what the rest
/// of the model has used, and have gradients.
/// Throws: Error for a name that the model has not, for a module that only contains others, such as ModuleList, and for
/// one that was not called; what the model throws.
/// Source: torchvision's create_feature_extractor.
template <class M, class... Inputs>
  requires std::derived_from<M, Module>
std::vector<NamedTensor> outputs_of(M& model, const ModuleNames& names, const Inputs&... inputs) {
  OutputCapture capture(model, names);
  static_cast<void>(detail::call_at(model, names.where, inputs...));
  return capture.results();
}

}  // namespace reel::nn
