#pragma once

#include <string>

namespace reel::detail {

/// A call of a module that runs on a thread or fibre: the base class of `nn::ModuleCall`, through which an error of an
/// op names the module.
class ActiveModule {
 public:
  /// The name of the module within the outermost one around it: "layers.1.attention"; empty for the outermost.
  virtual std::string module_path() const = 0;

 protected:
  ~ActiveModule() = default;
};

}  // namespace reel::detail
