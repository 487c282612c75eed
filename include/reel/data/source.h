#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::data {

/// The line of a file that an item was read from. Readers give one to each item; copies share the file's name.
class Source {
 public:
  /// An unknown source.
  Source() = default;
  /// A line of a file; `line` counts from 1, and 0 stands for the whole file.
  Source(std::string file, std::int64_t line)
      : file_(std::make_shared<const std::string>(std::move(file))), line_(line) {}
  /// A line of a file whose name is shared with other sources.
  Source(std::shared_ptr<const std::string> file, std::int64_t line) : file_(std::move(file)), line_(line) {}

  /// True if a file is known.
  bool known() const { return file_ != nullptr; }
  /// The path of the file, as the reader was given it; empty if the source is unknown.
  std::string file() const { return file_ ? *file_ : std::string(); }
  /// The line, from 1; 0 for the whole file, or if the source is unknown.
  std::int64_t line() const { return line_; }

 private:
  std::shared_ptr<const std::string> file_;
  std::int64_t line_ = 0;
};

/// The sources of the items of a batch, with its tensors (N, …): the batch itself, or its members x and y.
struct BatchSources : std::vector<Source> {
  std::vector<Tensor> tensors = {};  ///< a row of each for each item; empty if the batch has no such tensors
};

/// The source as `file:line`, safe for a terminal or a log; `file` for a whole file, "unknown source" for an unknown
/// one.
std::string to_string(const Source& source);

/// The first few of several sources: "a.txt:3, a.txt:9 and 14 more". Unknown ones are left out; empty if none is known.
std::string to_string(std::span<const Source> sources, std::size_t most = 8);

}  // namespace reel::data
