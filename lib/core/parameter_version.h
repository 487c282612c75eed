#pragma once

#include "storage.h"

namespace reel::detail {

/// Identifies the values of a parameter, so that products can cache what they derive from them. `number` is the
/// parameter's id; 0: of no parameter.
struct ParameterVersion {
  std::uint32_t number, version;
};

inline ParameterVersion version_of(const Body& body) {
  const Storage& storage = *body.storage;
  // Elements that are being written have no version yet.
  if (storage.writers.load(std::memory_order_relaxed) != 0) return {};
  return {storage.number.load(std::memory_order_relaxed), storage.version.load(std::memory_order_relaxed)};
}

}  // namespace reel::detail
