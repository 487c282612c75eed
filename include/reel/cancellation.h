#pragma once

namespace reel {

/// Base class of exceptions that ask what runs to end and report no fault of it, such as `train::Interrupted`. Code that
/// adds words to errors, as a `data::Loader` does to those of its items, rethrows them unchanged. A program's own:
/// `struct Enough : std::exception, reel::Cancellation {}`.
class Cancellation {
 public:
  virtual ~Cancellation() = default;

 protected:
  Cancellation() = default;
  /// Copies as part of the exception that derives from it, never by itself.
  Cancellation(const Cancellation&) = default;
  /// Assigns as part of the exception that derives from it, never by itself.
  Cancellation& operator=(const Cancellation&) = default;
};

}  // namespace reel
