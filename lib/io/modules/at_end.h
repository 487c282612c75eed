#pragma once

#include <reel/detail/immovable.h>

namespace reel::detail {

/// Calls a function when its lifetime ends: `AtEnd end([&] { inflateEnd(&stream); });`.
template <class Function>
class AtEnd : Immovable {
 public:
  explicit AtEnd(Function function) : function_(function) {}
  ~AtEnd() { function_(); }

 private:
  Function function_;
};

}  // namespace reel::detail
