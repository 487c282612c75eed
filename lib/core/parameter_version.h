#pragma once

#include "storage.h"

namespace reel::detail {

/// Which values of which parameter a matrix has: products may keep what they made of them. Number 0: of none.
struct ParameterVersion {
  std::uint32_t number, version;
};

inline ParameterVersion version_of(const Body& body) {
  const Storage& storage = *body.storage;
  // What is being written has no version yet.
  if (storage.writers.load(std::memory_order_relaxed) != 0) return {};
  return {storage.number.load(std::memory_order_relaxed), storage.version.load(std::memory_order_relaxed)};
}

}  // namespace reel::detail
