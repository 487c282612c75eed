#pragma once

#include <functional>
#include <optional>
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

/// Writes a module's parameters and buffers under their dotted names: `save(path, tensors)`. The file is marked: its
/// metadata have the word {"format", "reel"}, by which `load_into` knows that nothing has to be transposed. Python reads it
/// with `safetensors.safe_open(file, "pt").metadata()`.
/// Throws: as `save` of tensors; Error where the metadata give "format" another meaning.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {},
          Location where = Location::here());

/// Throws what `save` of the module would throw, as far as that is known before the elements are written, and changes no
/// file: for the begin of a program that saves after hours.
void check_save(const std::string& path, const nn::Module& module, const Metadata& metadata = {},
                Location where = Location::here());

struct LoadOptions {
  /// The file must have every parameter and buffer of the module, and nothing else.
  bool strict = true;
  /// Values of another dtype are converted; else they do not fit.
  bool convert = false;
  /// True: the names and shapes are those of PyTorch's layers of the same kind and place, see below. False: they are those
  /// of reel's layers. Not given: they are reel's, unless a file that is not marked would fit both ways, which throws.
  std::optional<bool> from_pytorch = {};
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
/// PyTorch keeps some weights otherwise, that of a Linear as (out, in) where reel has (in, out), and nothing is turned
/// unless you say so. Files that `save` has written of a module are marked as reel's, and `from_pytorch` is an error with
/// them. Others are not: those of PyTorch, of a list of tensors, or of reel before it marked files. They are read as
/// reel's where their shapes show that they are; where weights of Linear fit both ways, since all of them are square, say
/// `.from_pytorch = true` or `.from_pytorch = false`. With `from_pytorch`, what it saves of Linear, Embedding, EmbeddingBag, BatchNorm, the recurrent
/// cells and layers, MultiheadAttention and the layers of Transformers is renamed, turned and put together for the layer
/// of the same place in the module:
///
///     # Python: safetensors.torch.save_file(model.state_dict(), "model.safetensors")
///     io::load_into(model, "model.safetensors", {.from_pytorch = true});
///
/// What has another name in Python is renamed before that, and what is still to be done, for parameters of your own, say,
/// after it:
///
///     io::load_into(model, "model.safetensors",
///                   {.from_pytorch = true,
///                    .rename = [](const std::string& name) { return name == "fc.bias" ? "output.bias" : name; },
///                    .transform = [](const std::string& name, const Tensor& x) {
///                      return name == "mix" ? transpose(x) : x;
///                    }});
///
/// Throws: MisfitError, also for a marked file with `from_pytorch` and for one that is not marked and fits both ways; as
/// `load`; Error where `rename` gives a name twice, or a tensor is there under PyTorch's name and
/// the module's own.
PassedOver load_into(nn::Module& module, const std::string& path, const LoadOptions& options = {},
                     Location where = Location::here());
/// Copies the values in what `load` has read into a module, as `load_into` with the file's path does.
PassedOver load_into(nn::Module& module, const Contents& contents, const LoadOptions& options = {},
                     Location where = Location::here());
/// Copies the values of tensors that are not from a file into a module, as `load_into` with a file's path does. They are
/// laid out as reel's unless `from_pytorch` is true: there is no mark that could tell.
PassedOver load_into(nn::Module& module, std::span<const NamedTensor> tensors, const LoadOptions& options = {},
                     Location where = Location::here());
inline PassedOver load_into(nn::Module& module, const std::vector<NamedTensor>& tensors,
                            const LoadOptions& options = {}, Location where = Location::here()) {
  return load_into(module, std::span<const NamedTensor>(tensors), options, where);
}

}  // namespace reel::io
