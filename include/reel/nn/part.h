#pragma once

#include <string>
#include <string_view>

#include <reel/location.h>

namespace reel::nn {

class Module;

/// The name of a part, with the location where it is given: for constructors that end in any number of parameters.
struct Name {
  std::string_view text;  ///< the name
  Location where;         ///< the location of the call

  /// A name, with the location of the caller.
  Name(const char* text, Location where = Location::here()) : text(text), where(where) {}
  /// A name, with the location of the caller.
  Name(const std::string& text, Location where = Location::here()) : text(text), where(where) {}
  /// A name, with the location of the caller.
  Name(std::string_view text, Location where = Location::here()) : text(text), where(where) {}
};

/// A part of a module, which has a name in it: a parameter, a buffer or a sub-module. Part and module point at each
/// other, and whichever of them moves updates the other.
class ModulePart {
 public:
  /// True if it is part of a module.
  bool has_place() const { return around_ != nullptr; }

 protected:
  /// A part of no module.
  ModulePart() = default;
  /// A copy, which is part of no module.
  ModulePart(const ModulePart&) {}
  /// Cannot be assigned.
  ModulePart& operator=(const ModulePart&) = delete;
  /// Leaves the module.
  ~ModulePart();

  /// Takes over the place of `other` in its module, if this has none: for a part that `other` is moved to. `gone`: the
  /// other may take it back.
  void take_place(ModulePart& other, bool gone) noexcept;
  /// Takes back the place that another part took over when this was moved from.
  void take_back() noexcept;
  /// Exchanges the places of two parts in their modules.
  static void swap_places(ModulePart& a, ModulePart& b) noexcept;

 private:
  friend class Module;
  friend class Member;
  friend struct Cloning;
  friend struct ModuleLayout;

  Module* around_ = nullptr;
  Module* before_ = nullptr;  // where another has had its place since it was moved from
};

}  // namespace reel::nn
