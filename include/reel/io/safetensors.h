#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/error.h>
#include <reel/named_tensor.h>

/// \file
/// Named tensors in a file of the safetensors format: eight bytes with the length of the header, little-endian; the
/// header, which is JSON; the elements, one tensor after another. Python reads and writes such files with
/// `safetensors.torch.load_file` and `save_file`.
///
/// dtypes are F64 F32 F16 BF16 I64 I32 U8 BOOL.
/// Source: github.com/huggingface/safetensors, "Format".

namespace reel::io {

/// A tensor and its name.
using reel::NamedTensor;

/// An error: a file cannot be read or written, or has not the expected format.
class FileError : public Error {
  using Error::Error;
};

/// Metadata of a file, text by key: `{"epoch", "3"}`. The key "format" says which program laid out the weights; `save`
/// of a module sets it to "reel" (io/weights.h).
using Metadata = std::map<std::string, std::string>;

/// The contents of a file.
struct Contents {
  std::vector<NamedTensor> tensors;  ///< in the order in which the header names them
  Metadata metadata;                 ///< text by key

  /// The tensor of the given name; null if there is none.
  const Tensor* find(std::string_view name) const;
  /// The tensor of the given name. Throws: Error if there is none.
  const Tensor& at(std::string_view name, Location where = Location::here()) const;
};

/// Saves named tensors to a file in the safetensors format. A reader, even after a power cut, finds the old
/// file or the new one whole: a failure leaves the old one, and nothing else; the temporary file of a process that is
/// killed while it saves is removed by the next save under that name. Tensors that share elements are written once for
/// each name.
///
/// A symbolic link is kept, and the file that it leads to is replaced. A new file has the old one's permissions,
/// without its set-user-ID and set-group-ID bits, and its owner if root saves it.
/// Throws: FileError, with the system's message, if the file cannot be written, and for a link or a file of another
/// user in a sticky folder that all may write to, such as /tmp; Error for an undefined tensor, for a name that occurs
/// twice, is `__metadata__` or is not UTF-8, and for metadata that are not UTF-8.
void save(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata = {},
          Location where = Location::here());
/// Saves named tensors to a file in the safetensors format. A reader, even after a power cut, finds the old
/// file or the new one whole: a failure leaves the old one, and nothing else; the temporary file of a process that is
/// killed while it saves is removed by the next save under that name. Tensors that share elements are written once for
/// each name.
///
/// A symbolic link is kept, and the file that it leads to is replaced. A new file has the old one's permissions,
/// without its set-user-ID and set-group-ID bits, and its owner if root saves it.
/// Throws: FileError, with the system's message, if the file cannot be written, and for a link or a file of another
/// user in a sticky folder that all may write to, such as /tmp; Error for an undefined tensor, for a name that occurs
/// twice, is `__metadata__` or is not UTF-8, and for metadata that are not UTF-8.
inline void save(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata = {},
                 Location where = Location::here()) {
  save(path, std::span<const NamedTensor>(tensors), metadata, where);
}

/// Throws what `save` of these tensors would throw, as far as that is known before the elements are written, and
/// changes no file: for the start of a program that saves after hours.
/// Throws: FileError if the file cannot be written; Error for an undefined tensor, and for names or metadata that
/// `save` refuses.
void check_save(const std::string& path, std::span<const NamedTensor> tensors = {}, const Metadata& metadata = {},
                Location where = Location::here());

/// Loads all tensors and the metadata of a file in the safetensors format, or of `torch.save` as `load_pytorch` does, to
/// the CPU: its first bytes tell which. Nothing is read or allocated beyond what the file's size allows, whatever it
/// contains. A `model.safetensors.index.json`, whose "weight_map" names the file of each tensor, gives the tensors of all
/// of these files. `open` (io/tensor_file.h) reads tensors only when they are used.
/// Throws: FileError if it cannot be read or is no regular file, breaks a rule of the format, or has a dtype or a rank
/// that tensors lack; if an index is faulty, leads out of its folder, names one file by two names, or a tensor that its
/// file lacks; MemoryError if there is not enough memory.
Contents load(const std::string& path, Location where = Location::here());

}  // namespace reel::io
