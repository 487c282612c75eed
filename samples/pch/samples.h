// Precompiled for the samples: CLI11 is parsed once instead of once a sample.
#include <reel/reel.h>

#include <CLI/CLI.hpp>
