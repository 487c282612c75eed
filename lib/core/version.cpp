#include <reel/version.h>

namespace reel {

const Version& library_version() noexcept {
  // A copy: the loader makes one object of the inline variable in the program and in the library, the program's.
  static constexpr Version built = version;
  return built;
}

}  // namespace reel
