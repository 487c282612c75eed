#pragma once

#include <cstddef>
#include <string>

#include <reel/location.h>

#include "../op_error.h"
#include "module_table.h"

namespace reel::detail {

/// The table of a module, which is loaded from the folder that the environment variable REEL_MODULES names, from the
/// folder of the library or program that contains reel, or from where reel was installed; it is never unloaded. Null,
/// with a sentence in `failure`, if there is none, it cannot be loaded, or it belongs to another build.
const void* load_module(const ModuleName& module, std::size_t bytes, std::string& failure);

/// The table of the module `Table::module`, loaded by the first call. Safe to call from several threads; after a
/// failure the next call tries again. Throws: E, in the name of `function`.
template <class Table, class E>
const Table& open_module(const char* function, Location where) {
  static const auto* table = [&] {
    std::string failure;
    const void* loaded = load_module(Table::module, sizeof(Table), failure);
    if (!loaded) fail<E>(function, where, "{}", failure);
    return static_cast<const Table*>(loaded);
  }();
  return *table;
}

}  // namespace reel::detail
