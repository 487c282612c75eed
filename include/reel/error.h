#pragma once

#include <stdexcept>
#include <string>

#include <reel/location.h>

namespace reel {

/// An error in the use of the library: the base class of reel's exceptions. `what()` is one sentence: the op, every
/// shape or dtype involved, and the caller's `file:line`.
class Error : public std::runtime_error {
 public:
  /// An error of one sentence, to which the caller's location is appended.
  Error(const std::string& sentence, Location where);
  /// The caller's location; empty if there is none.
  Location where() const { return where_; }

 protected:
  /// An error of one sentence, to which the caller's location is appended, followed by more lines.
  Error(const std::string& sentence, Location where, const std::string& lines);

 private:
  Location where_;
};

/// An error: shapes, sizes or axes do not fit.
class ShapeError : public Error {
  using Error::Error;
};
/// An error: an op does not take an element type.
class DTypeError : public Error {
  using Error::Error;
};
/// An error: an index is out of range.
class IndexError : public Error {
  using Error::Error;
};
/// An error: tensors are on different devices, a device does not exist, or it lacks an op.
class DeviceError : public Error {
  using Error::Error;
};
/// An error: a gradient cannot be computed, or would be wrong.
class TapeError : public Error {
  using Error::Error;
};

/// An error: there is not enough memory.
class MemoryError : public Error {
  using Error::Error;
};

/// An error in the library itself, not in its use: please report it.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace reel
