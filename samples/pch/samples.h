// Precompiled for the samples: the library's headers are parsed once instead of once a sample.
#include <reel/reel.h>
#include <reel/train.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
