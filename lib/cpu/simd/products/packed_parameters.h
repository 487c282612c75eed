#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "../../../core/parameter_version.h"
#include "../../../core/per_thread.h"
#include "../../../kernels/kernel_table.h"
#include "gemm.h"

// A cache of parameters packed for products: a recurrent net multiplies by one hundreds of times between two steps of
// the optimiser. It is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// The matrices that a thread has packed. The cache holds no storage: a parameter that was freed or overwritten is not
/// requested again, because no other has its id and version, and its packed form is evicted in time.
class PackedParameters {
 public:
  /// The largest size of a thread's cache in bytes, and of that of rounded weights, for which the caller has asked.
  static constexpr std::size_t most_bytes = std::size_t{1} << 26, most_rounded_bytes = std::size_t{1} << 28;

  explicit PackedParameters(std::size_t limit = most_bytes) : limit_(limit) {}

  enum class Form : std::uint8_t { tiles, aligned_rows, vnni, bf16_rows, f16_rows, bf16_tiles, f16_tiles };
  struct Key {
    ParameterVersion version;
    const void* data;
    std::int64_t rows, columns, row_stride, column_stride;
    Form form;
    bool operator==(const Key& other) const {
      return form == other.form && version.number == other.version.number && version.version == other.version.version &&
             data == other.data && rows == other.rows && columns == other.columns && row_stride == other.row_stride &&
             column_stride == other.column_stride;
    }
  };

  /// The `size` elements that pack(T*) writes for a matrix. Null for the first `waits` requests, after which there may
  /// be no more, and if memory is exhausted.
  template <class T, class Pack>
  const T* find(const Key& key, int waits, std::int64_t size, Pack pack) {
    if (places_.empty() && !make_places()) [[unlikely]]
      return nullptr;
    Place& place = places_[place_of(key)];
    place.last_use = ++uses_;
    if (!(place.key == key)) {
      place.key = key;
      place.packed = false;
      place.waited = 0;
    }
    if (!place.packed) {
      if (place.waited < waits) {
        ++place.waited;
        return nullptr;
      }
      if (!reserve(place, static_cast<std::size_t>(size) * sizeof(T))) return nullptr;
      pack(place.memory.get<T>(size));
      place.packed = true;
    }
    return place.memory.get<T>(size);
  }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Place {
    Key key{};
    std::uint64_t last_use = 0;
    int waited = 0;
    bool packed = false;
    Scratch memory;
  };
  // Two matrices with one hash are not packed while they are requested alternately.
  static constexpr int bits = 8;

  static std::size_t place_of(const Key& key) {
    std::uint64_t hash =
        key.version.number * 0x9e3779b97f4a7c15 +
        (reinterpret_cast<std::uintptr_t>(key.data) >> 2) * 0xbf58476d1ce4e5b9 +
        (static_cast<std::uint64_t>(key.column_stride) + static_cast<std::uint64_t>(key.form)) * 0x94d049bb133111eb;
    return static_cast<std::size_t>(hash >> (64 - bits));
  }

  // Returns false if memory is exhausted.
  bool make_places() {
    try {
      places_.resize(std::size_t{1} << bits);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  // The memory of an older version is reused for a newer one.
  bool reserve(Place& place, std::size_t bytes) {
    if (bytes <= place.memory.bytes()) return true;
    if (bytes > limit_ / 2) return false;
    free(place);
    while (bytes_ + bytes > limit_) free(oldest());
    try {
      place.memory.get<char>(static_cast<std::int64_t>(bytes));
    } catch (const std::bad_alloc&) {
      return false;
    }
    bytes_ += place.memory.bytes();
    return true;
  }
  void free(Place& place) {
    bytes_ -= place.memory.bytes();
    place.memory = {};
    place.packed = false;
  }
  Place& oldest() {
    auto age = [](const Place& place) { return place.memory.bytes() == 0 ? UINT64_MAX : place.last_use; };
    return *std::min_element(places_.begin(), places_.end(),
                             [&](const Place& a, const Place& b) { return age(a) < age(b); });
  }

  std::size_t limit_;
  std::vector<Place> places_;  // empty before the first use
  std::uint64_t uses_ = 0;
  std::size_t bytes_ = 0;
};

inline constinit PerThread<PackedParameters> packed_parameters;

inline constinit PerThread<PackedParameters> rounded_parameters_of_thread;
/// The weights that this thread has rounded.
inline PackedParameters& rounded_parameters() {
  return rounded_parameters_of_thread.get([] { return PackedParameters(PackedParameters::most_rounded_bytes); });
}

}  // namespace reel::detail::inline REEL_TARGET
