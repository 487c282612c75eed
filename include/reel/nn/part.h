#pragma once

#include <string>
#include <string_view>

#include <reel/location.h>

namespace reel::nn {

class Module;

/// A name, and the line that it stands in: for constructors that end in any number of parameters.
struct Name {
  std::string_view text;
  Location where;

  Name(const char* text, Location where = Location::here()) : text(text), where(where) {}
  Name(const std::string& text, Location where = Location::here()) : text(text), where(where) {}
  Name(std::string_view text, Location where = Location::here()) : text(text), where(where) {}
};

/// What a module has a place and a name for: a parameter, a buffer or a sub-module. Part and module point at each other,
/// and whichever of them moves tells the other.
class Part {
 public:
  /// Whether it is part of a module.
  bool has_place() const { return around_ != nullptr; }

 protected:
  Part() = default;
  Part(const Part&) {}
  Part& operator=(const Part&) = delete;
  ~Part();

  /// For what is moved to here: takes the other's place, if this has none. `gone`: the other may take it back.
  void take_place(Part& other, bool gone) noexcept;
  /// Takes the place back that another has had since this was moved from.
  void take_back() noexcept;
  /// Each gets the place of the other.
  static void swap_places(Part& a, Part& b) noexcept;

 private:
  friend class Module;
  friend class Member;
  friend struct Cloning;

  Module* around_ = nullptr;
  Module* before_ = nullptr;  // where another has had its place since it was moved from
};

}  // namespace reel::nn
