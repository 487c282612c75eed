// Precompiled for the library: most of its files take longer to read these headers than to compile. Files include what
// they use all the same.
#include <reel/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../core/context.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../dispatch/invoke.h"
