#pragma once

#include <cstddef>
#include <vector>

#include "../core/storage.h"
#include "entry.h"

namespace reel::detail {

/// Prefetches into the caches what entries have saved, some entries before a backward pass reaches them. On a tape of a
/// million entries all of it has left the caches: each entry's gradient, and freeing it, would wait for memory several
/// times.
class Prefetcher {
 public:
  /// `entry`: the first entry of the backward pass; null: nothing is prefetched.
  explicit Prefetcher(const Entry* entry) : for_bodies_(entry), for_storages_(entry) {
    for (int i = 0; i < body_distance; ++i) fetch_bodies();
    for (int i = 0; i < storage_distance; ++i) fetch_storages();
  }
  /// Called for each entry that the backward pass visits.
  void advance() {
    fetch_bodies();
    fetch_storages();
  }
  /// Prefetches for a backward pass along a path that is at its i-th entry.
  static void fetch(const std::vector<Entry*>& path, std::size_t i) {
    if (i + body_distance < path.size()) fetch_bodies(*path[i + body_distance]);
    if (i + storage_distance < path.size()) fetch_storages(*path[i + storage_distance]);
  }

 private:
  static constexpr int body_distance = 16, storage_distance = 8;

  // The cache line before the body holds the block's header.
  static void fetch_bodies(const Entry& entry) {
    for (std::uint32_t i = 0; i < entry.saved_count; ++i) {
      const char* body = reinterpret_cast<const char*>(&entry.saved()[i].tensor.body());
      __builtin_prefetch(body - 64, 1);
      __builtin_prefetch(body, 1);
      __builtin_prefetch(body + 64, 1);
    }
  }
  static void fetch_storages(const Entry& entry) {
    for (std::uint32_t i = 0; i < entry.saved_count; ++i) {
      const char* storage = reinterpret_cast<const char*>(entry.saved()[i].tensor.body().storage);
      __builtin_prefetch(storage - 64, 1);
      __builtin_prefetch(storage, 1);
    }
  }
  void fetch_bodies() {
    if (!for_bodies_) return;
    fetch_bodies(*for_bodies_);
    for_bodies_ = for_bodies_->previous;
  }
  void fetch_storages() {
    if (!for_storages_) return;
    fetch_storages(*for_storages_);
    for_storages_ = for_storages_->previous;
  }

  const Entry *for_bodies_, *for_storages_;
};

}  // namespace reel::detail
