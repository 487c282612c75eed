// A plugin of a release with another interface.
#include <reel/c/plugin.h>

extern "C" const reel::Plugin* reel_plugin() {
  static const reel::Plugin other{.version = reel::Plugin::interface_version + 1};
  return &other;
}
