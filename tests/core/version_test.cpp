#include <reel/reel.h>

#include <string>

#include "catch.h"

using namespace reel;

TEST_CASE("headers and library tell their version, and agree") {
  CHECK(library_version() == version);
  CHECK(library_version().string == std::string(version.string));
  CHECK(version.string ==
        std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch));
}

TEST_CASE("versions that differ in one part are not equal") {
  constexpr Version one{1, 2, 3, "1.2.3"};
  CHECK(one == Version{1, 2, 3, "1.2.3"});
  CHECK_FALSE(one == Version{0, 2, 3, "0.2.3"});
  CHECK_FALSE(one == Version{1, 0, 3, "1.0.3"});
  CHECK_FALSE(one == Version{1, 2, 0, "1.2.0"});
}
