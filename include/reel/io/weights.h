#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/nn/module.h>

namespace reel::io {

/// Weights that do not fit a module. `what()` lists, a line each, what is missing, what is unexpected, and whose shape or
/// dtype differs.
class MisfitError : public Error {
 public:
  MisfitError(const std::string& sentence, Location where, const std::string& lines) : Error(sentence, where, lines) {}
};

/// Writes a module's parameters and buffers under their dotted names: `save(path, tensors)`.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {},
          Location where = Location::here());

struct LoadOptions {
  /// The file must have every parameter and buffer of the module, and nothing else.
  bool strict = true;
  /// Values of another dtype are converted; else they do not fit.
  bool convert = false;
  /// What the module calls a tensor that the file has under this name; "": it is left out. Null: the same.
  std::function<std::string(const std::string& name)> rename = {};
  /// What becomes of a tensor, given its name in the module, before it is compared. Null: nothing.
  std::function<Tensor(const std::string& name, const Tensor& tensor)> transform = {};
};

/// What a load that is not strict has passed over.
struct PassedOver {
  std::vector<std::string> missing;     ///< in the module only
  std::vector<std::string> unexpected;  ///< in the file only, under the module's names
};

/// Copies the values in a file into a module's parameters and buffers of the same names: in place, so that optimisers
/// and tied modules see them, and a tape that needs the old ones throws. Where anything does not fit, nothing changes.
///
/// PyTorch keeps the weight of a Linear as (out, in), reel as (in, out); nothing is turned unless you say so:
///
///     io::load_into(model, "from_python.safetensors",
///                   {.rename = [](const std::string& name) { return name == "head.bias" ? "output.bias" : name; },
///                    .transform = [](const std::string& name, const Tensor& x) {
///                      return name.ends_with("weight") && x.rank() == 2 ? transpose(x) : x;
///                    }});
///
/// Where tensors must be put together, as PyTorch's two biases of an LSTM, `load` the file and pass a list of your own.
/// Throws: MisfitError; as `load`; Error where `rename` gives a name twice.
PassedOver load_into(nn::Module& module, const std::string& path, const LoadOptions& options = {},
                     Location where = Location::here());
/// The same with tensors that come from elsewhere.
PassedOver load_into(nn::Module& module, std::span<const NamedTensor> tensors, const LoadOptions& options = {},
                     Location where = Location::here());
inline PassedOver load_into(nn::Module& module, const std::vector<NamedTensor>& tensors,
                            const LoadOptions& options = {}, Location where = Location::here()) {
  return load_into(module, std::span<const NamedTensor>(tensors), options, where);
}

}  // namespace reel::io
