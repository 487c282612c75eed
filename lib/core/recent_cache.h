#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace reel::detail {

/// A least-recently-used cache. Each thread has its own, because objects made by libraries must not be used by two
/// threads at a time. A key holds everything on which the value depends, and is compared by its bytes.
template <class Key, class Value>
  requires(std::is_trivially_copyable_v<Key> && std::has_unique_object_representations_v<Key>)
class RecentCache {
 public:
  explicit RecentCache(std::size_t capacity) : capacity_(capacity) {}

  /// The value for a key; if there is none, it is made by make() and the least recently used one is dropped.
  template <class Make>
  Value& find(const Key& key, Make make) {
    if (auto found = places_.find(key); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    entries_.emplace_front(key, make());
    try {
      places_.emplace(key, entries_.begin());
    } catch (...) {
      entries_.pop_front();
      throw;
    }
    if (entries_.size() > capacity_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      // FNV-1a, eight bytes at a time.
      static_assert(sizeof(Key) % 8 == 0);
      std::uint64_t hash = 0xcbf29ce484222325;
      for (std::size_t i = 0; i < sizeof(Key); i += 8) {
        std::uint64_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&key) + i, 8);
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  struct Equal {
    bool operator()(const Key& a, const Key& b) const { return std::memcmp(&a, &b, sizeof(Key)) == 0; }
  };

  std::list<std::pair<Key, Value>> entries_;  // most recently used first
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator, Hash, Equal> places_;
  std::size_t capacity_;
};

}  // namespace reel::detail
