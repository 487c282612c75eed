#pragma once

namespace reel::detail {

/// Calls a function when its lifetime ends: `AtEnd end([&] { inflateEnd(&stream); });`.
template <class Function>
class AtEnd {
 public:
  explicit AtEnd(Function function) : function_(function) {}
  ~AtEnd() { function_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  Function function_;
};

}  // namespace reel::detail
