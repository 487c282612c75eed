#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/location.h>
#include <reel/tensor.h>

namespace reel::io {

/// The name of a tensor, with the line that asks for it: what `TensorFile` is indexed by.
struct TensorName {
  std::string_view text;  ///< the name, of which no copy is made
  Location where;         ///< the caller's

  /// A name: `file["weight"]`.
  TensorName(const char* name, Location where = Location::here()) : text(name), where(where) {}
  /// A name: `file[name]`.
  TensorName(const std::string& name, Location where = Location::here()) : text(name), where(where) {}
  /// A name: `file[name]`.
  TensorName(std::string_view name, Location where = Location::here()) : text(name), where(where) {}
};

/// The tensors of an open safetensors file, or of a checkpoint in several of them, read where they are used: made by
/// `open`. Copies share the open files. Several threads may use one object.
///
///     io::TensorFile file = io::open("model.safetensors");
///     Tensor row = file["embedding"](7);
///
/// A tensor refers to the pages of the file, which the system reads when an element is first used and may drop again.
/// It stays valid after the `TensorFile`. Writing to it changes this process's copy of the page, never the file. If
/// another program shortens the file while it is open, the system ends this process at the next use of what was cut off
/// (SIGBUS); programs that replace files, as `save` does, leave the open one whole. `load` copies instead.
class TensorFile {
 public:
  /// The names of all tensors, in the order of the header; of a checkpoint in several files, in alphabetical order.
  std::vector<std::string> names() const;
  /// True if there is a tensor of the given name.
  bool contains(std::string_view name) const;
  /// The shape of a tensor, for which none of its elements is read. Throws: Error if there is none of that name.
  Shape shape(TensorName name) const;
  /// The dtype of a tensor, for which none of its elements is read. Throws: Error if there is none of that name.
  DType dtype(TensorName name) const;
  /// A tensor on the CPU, over the bytes of the file. Every call with a name returns a handle of one tensor. Where the
  /// bytes are not aligned to an element, which `save` never writes, it is a copy. Throws: Error if there is none of that name; MemoryError.
  Tensor operator[](TensorName name) const;
  /// The metadata of the file; of several files those of all, where they differ those of the first by name.
  const Metadata& metadata() const;
  /// All tensors and the metadata, as `load` gives them, but over the bytes of the file: `load_into(model,
  /// file.contents())` reads every weight once. Throws: MemoryError.
  Contents contents(Location where = Location::here()) const;

 private:
  friend TensorFile open(const std::string& path, Location where);
  struct State;
  explicit TensorFile(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Opens a file in the safetensors format and maps it into memory. Its header is checked whole; elements are read when
/// they are used. A `model.safetensors.index.json` as PyTorch's users have it, whose "weight_map" names the file of
/// each tensor, opens all of these files, which must be in its folder or below.
/// Throws: FileError if a file cannot be opened or is no regular file, breaks a rule of the format, or has a dtype or a
/// rank that tensors lack; if an index is faulty, leads out of its folder, names one file by two names, or a tensor that
/// its file lacks.
/// Source: github.com/huggingface/safetensors, "Format"; huggingface_hub's "Serialization" for the index.
TensorFile open(const std::string& path, Location where = Location::here());

}  // namespace reel::io
