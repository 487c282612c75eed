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

/// An error: weights do not fit a module. `what()` lists, a line each, the missing and unexpected tensors, and those
/// whose shape or dtype differs.
class MisfitError : public Error {
 public:
  /// An error of one sentence with the caller's location, followed by a line for each tensor that does not fit.
  MisfitError(const std::string& sentence, Location where, const std::string& lines) : Error(sentence, where, lines) {}
};

/// Saves the parameters and buffers of a module under their dotted names to a file in the safetensors format. The file
/// is marked: its metadata have {"format", "reel"}, by which `load_into` knows that no weight has to be transposed.
/// Python reads the metadata with `safetensors.safe_open(file, "pt").metadata()`. A reader of the file, even after a
/// power cut, finds the old one or the new one whole.
/// Throws: FileError, with the system's message, if the file cannot be written; Error where the metadata give "format"
/// another meaning, and for metadata or names that are not UTF-8.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {},
          Location where = Location::here());

/// Options of `save`.
struct SaveOptions {
  /// Whether names and shapes are those of PyTorch's layers of the corresponding kind and place, so that Python loads the
  /// file by `model.load_state_dict(safetensors.torch.load_file("model.safetensors"))`. Default false.
  bool for_pytorch = false;
  /// Words that are saved with the tensors. Default: none.
  Metadata metadata = {};
};

/// Saves the parameters and buffers of a module to a file in the safetensors format, as reel or as PyTorch names and lays
/// them out: `io::save("model.safetensors", model, {.for_pytorch = true})`. For PyTorch, what `load_into` converts with
/// `from_pytorch` is converted back: the weights of Linear, Embedding, EmbeddingBag, BatchNorm, the recurrent cells and
/// layers, MultiHeadAttention and the layers of Transformers are renamed, transposed, joined and divided. A recurrent
/// layer's one bias becomes bias_ih, and bias_hh is 0. Layers that PyTorch lacks keep their names. A tensor under several
/// names is saved under each, as in a state_dict. The file is marked by {"format", "pt"}. A reader of the file, even after
/// a power cut, finds the old one or the new one whole.
/// Throws: FileError, with the system's message, if the file cannot be written; Error where the metadata give "format"
/// another meaning, and for metadata or names that are not UTF-8.
void save(const std::string& path, const nn::Module& module, const SaveOptions& options,
          Location where = Location::here());

/// Throws what `save` of the module would throw, as far as that is known before the elements are written, and changes
/// no file: for the start of a program that saves after hours.
/// Throws: FileError if the file cannot be written; Error for metadata that `save` refuses.
void check_save(const std::string& path, const nn::Module& module, const Metadata& metadata = {},
                Location where = Location::here());

/// Options of `load_into`.
struct LoadOptions {
  /// Whether the file must have every parameter and buffer of the module, and nothing else. Default true.
  bool strict = true;
  /// Whether values of another dtype are converted; else they do not fit. Default false.
  bool convert = false;
  /// True: the names and shapes are those of PyTorch's layers of the corresponding kind and place, see `load_into`.
  /// False: they are those of reel's layers. Default, empty: those of a file of `torch.save` are PyTorch's; others
  /// are reel's, unless a file that is not marked would fit both ways, which throws.
  std::optional<bool> from_pytorch = {};
  /// Whether the names and shapes are those of Keras's layers of the corresponding kind and place, see `load_into`. Default
  /// false.
  bool from_keras = false;
  /// Maps the name of a tensor in the file to its name in the module; "" leaves it out. Null (default): names are
  /// equal.
  std::function<std::string(const std::string& name)> rename = {};
  /// Transforms a tensor, given its name in the module, before it is compared. Null (default): no transformation.
  std::function<Tensor(const std::string& name, const Tensor& tensor)> transform = {};
};

/// The tensors that a load that is not strict has passed over.
struct PassedOver {
  std::vector<std::string> missing;     ///< in the module only
  std::vector<std::string> unexpected;  ///< in the file only, under the module's names
};

/// Copies the values in a file into a module's parameters and buffers of equal names: in place, so that optimisers
/// and tied modules see them, and a tape that needs the old ones throws. A tensor with several names in the module is
/// given under any of them, or under several with equal values. Where anything does not fit, nothing changes.
/// The file's first bytes tell its format: safetensors, that of `torch.save` (io/pytorch.h), or HDF5 (io/hdf5.h).
///
/// PyTorch lays out some weights differently, that of a Linear as (out, in) where reel has (in, out), and nothing is
/// transposed unless you say so. Files that `save` has written of a module are marked as reel's, and `from_pytorch` is
/// an error with them. Others are not: those of PyTorch, of a list of tensors, or of reel before it marked files. They
/// are read as reel's where their shapes show that they are; where weights of Linear fit both ways, since all of them
/// are square, say `.from_pytorch = true` or `.from_pytorch = false`. With `from_pytorch`, what it saves of Linear,
/// Embedding, EmbeddingBag, BatchNorm, the recurrent cells and layers, MultiheadAttention and the layers of
/// Transformers is renamed, transposed and joined for the layer of the corresponding place in the module. For a file that
/// Python has written by `safetensors.torch.save_file(model.state_dict(), "model.safetensors")`:
///
///     io::load_into(model, "model.safetensors", {.from_pytorch = true});
///
/// `rename` runs before that, for tensors that have another name in Python, and `transform` after it, for parameters of
/// your own, say:
///
///     io::load_into(model, "model.safetensors",
///                   {.from_pytorch = true,
///                    .rename = [](const std::string& name) { return name == "fc.bias" ? "output.bias" : name; },
///                    .transform = [](const std::string& name, const Tensor& x) {
///                      return name == "mix" ? transpose(x) : x;
///                    }});
///
/// With `from_keras`, weights that Keras has saved are named by their layer, "dense.kernel", or from Keras 3 on
/// "dense.0", and what it saves of Dense, Conv1D to Conv3D, Embedding, BatchNormalization, LayerNormalization,
/// GroupNormalization, SimpleRNN, LSTM, GRU (with reset_after), Bidirectional and MultiHeadAttention is renamed, its
/// axes and gates put in reel's order:
///
///     io::load_into(model, "model.weights.h5",
///                   {.from_keras = true, .rename = [](const std::string& name) {
///                      return name.starts_with("dense.") ? "output" + name.substr(5) : name;
///                    }});
///
/// Throws: FileError if the file cannot be loaded; MisfitError for tensors that do not fit, for a marked file with
/// `from_pytorch`, and for one that is not marked and fits both ways; MemoryError if there is not enough memory; Error
/// where `rename` gives a name twice, or a tensor is there under PyTorch's name and the module's own.
PassedOver load_into(nn::Module& module, const std::string& path, const LoadOptions& options = {},
                     Location where = Location::here());
/// Copies the contents of a file, read by `load`, into a module's parameters and buffers of the corresponding names, in
/// place; where anything does not fit, nothing changes. Weights of PyTorch's layers are transposed with `from_pytorch`.
/// Throws: MisfitError for tensors that do not fit, for a marked file with `from_pytorch`, and for one that is not
/// marked and fits both ways; Error where `rename` gives a name twice, or a tensor is there under PyTorch's name and
/// the module's own.
PassedOver load_into(nn::Module& module, const Contents& contents, const LoadOptions& options = {},
                     Location where = Location::here());
/// Copies named tensors into a module's parameters and buffers of the corresponding names, in place; where anything
/// does not fit, nothing changes. They are laid out as reel's unless `from_pytorch` is true: there is no mark that
/// could tell.
/// Throws: MisfitError for tensors that do not fit; Error where `rename` gives a name twice, or a tensor is there under
/// PyTorch's name and the module's own.
PassedOver load_into(nn::Module& module, std::span<const NamedTensor> tensors, const LoadOptions& options = {},
                     Location where = Location::here());
/// Copies named tensors into a module's parameters and buffers of the corresponding names, in place; where anything
/// does not fit, nothing changes. They are laid out as reel's unless `from_pytorch` is true: there is no mark that
/// could tell.
/// Throws: MisfitError for tensors that do not fit; Error where `rename` gives a name twice, or a tensor is there under
/// PyTorch's name and the module's own.
inline PassedOver load_into(nn::Module& module, const std::vector<NamedTensor>& tensors,
                            const LoadOptions& options = {}, Location where = Location::here()) {
  return load_into(module, std::span<const NamedTensor>(tensors), options, where);
}

}  // namespace reel::io
