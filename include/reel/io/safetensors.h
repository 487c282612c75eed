#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/error.h>
#include <reel/nn/module.h>

// Tensors with names in a file, as safetensors lays them out: eight bytes that count the header's, little-endian; the
// header, which is JSON; the elements, one tensor behind the other. Python reads and writes such files with
// `safetensors.torch.load_file` and `save_file`.
//
// dtypes are F64 F32 F16 BF16 I64 I32 U8 BOOL. Source: github.com/huggingface/safetensors, "Format".

namespace reel::io {

using nn::NamedTensor;

/// A file that cannot be read or written, or is not what it should be.
class FileError : public Error {
  using Error::Error;
};

/// Words about a file: `{"epoch", "3"}`. The word "format" says which program laid out the weights; `save` of a module
/// sets it to "reel" (io/weights.h).
using Metadata = std::map<std::string, std::string>;

/// What a file holds.
struct Contents {
  std::vector<NamedTensor> tensors;  ///< in the order in which the header names them
  Metadata metadata;

  /// Null if there is none of the name.
  const Tensor* find(std::string_view name) const;
  /// Throws: Error if there is none of the name.
  const Tensor& at(std::string_view name, Location where = Location::here()) const;
};

/// Writes tensors into a file: whoever opens it, even after a power cut, finds the old file or the new one whole. What
/// fails leaves the old one, and nothing else; what a process leaves that is killed while it saves, the next save of that
/// name removes. Tensors that share elements are written once for each name.
///
/// A link goes on to be one, and the file that it leads to is replaced. A new file has the old one's permissions, without
/// its set-user-ID and set-group-ID bits, and its owner if root saves it.
/// Throws: FileError, which says what the system says, and for a link or a file of another user in a sticky folder that
/// all may write to, such as /tmp; Error for an undefined tensor, for a name that comes twice, is `__metadata__` or is not
/// UTF-8, and for metadata that are not.
void save(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata = {},
          Location where = Location::here());
inline void save(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata = {},
                 Location where = Location::here()) {
  save(path, std::span<const NamedTensor>(tensors), metadata, where);
}

/// Throws what `save` of these tensors would throw, as far as that is known before the elements are written, and changes no
/// file: for the begin of a program that saves after hours.
void check_save(const std::string& path, std::span<const NamedTensor> tensors = {}, const Metadata& metadata = {},
                Location where = Location::here());

/// Reads a file whole. Whatever it holds, nothing is read or allocated that the file's own size does not bear out.
/// Throws: FileError where it cannot be read or is no ordinary file, breaks a rule of the format, or has a dtype or a rank that tensors lack;
/// MemoryError.
Contents load(const std::string& path, Location where = Location::here());

}  // namespace reel::io
