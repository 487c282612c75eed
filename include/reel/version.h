#pragma once

namespace reel {

/// A release of reel: MAJOR.MINOR.PATCH. Up to 1.0 each MINOR may change what programs are compiled against; `lib/CHANGELOG.md`
/// says what each part promises.
struct Version {
  int major;           ///< rises with changes that ask users to change their programs, from 1.0 on
  int minor;           ///< rises with additions; before 1.0, with any change of the interface
  int patch;           ///< rises with corrections
  const char* string;  ///< the three parts with points between them, such as "0.2.0"

  /// True if all three numbers agree.
  friend constexpr bool operator==(const Version& a, const Version& b) {
    return a.major == b.major && a.minor == b.minor && a.patch == b.patch;
  }
};

/// The version of the headers that a program is compiled with.
inline constexpr Version version = {.major = 0, .minor = 2, .patch = 0, .string = "0.2.0"};

/// The version of the library that the program runs with. Where it differs from `version`, the program was compiled with the
/// headers of another release.
const Version& library_version() noexcept;

}  // namespace reel
