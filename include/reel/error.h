#pragma once

#include <stdexcept>
#include <string>

#include <reel/location.h>

namespace reel {

/// A mistake in how the library is used. `what()` is one sentence: the op, every shape or dtype involved, and the
/// caller's `file:line`.
class Error : public std::runtime_error {
 public:
  Error(const std::string& sentence, Location where);
  /// The caller's place; empty if there is none.
  Location where() const { return where_; }

 protected:
  /// With more lines after the sentence.
  Error(const std::string& sentence, Location where, const std::string& lines);

 private:
  Location where_;
};

/// Shapes, sizes or axes do not fit.
class ShapeError : public Error {
  using Error::Error;
};
/// An element type that the op does not take.
class DTypeError : public Error {
  using Error::Error;
};
/// An index out of range.
class IndexError : public Error {
  using Error::Error;
};
/// Tensors on different devices, or an op that a device lacks.
class DeviceError : public Error {
  using Error::Error;
};
/// A gradient that cannot be had, or would be wrong.
class TapeError : public Error {
  using Error::Error;
};

/// Not enough memory.
class MemoryError : public Error {
  using Error::Error;
};

/// A broken promise inside the library itself: please report it.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace reel
