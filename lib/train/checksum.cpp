#include "checksum.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/printable.h"
#include "../ops/if_needed.h"

namespace reel::detail {

namespace {

// A hash of 64 bits. Words go to four lanes, so that their multiplications overlap. Each round is a bijection of the
// lane, so that one changed word always changes the result.
class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    const char* bytes = static_cast<const char*>(data);
    add_word(size);
    constexpr std::size_t block = sizeof(std::uint64_t) * lanes;
    for (; size >= block; bytes += block, size -= block) {
      std::array<std::uint64_t, lanes> words;
      std::memcpy(words.data(), bytes, block);
      for (std::size_t lane = 0; lane < lanes; ++lane) lanes_[lane] = mixed(lanes_[lane], words[lane]);
    }
    for (; size > 0;) {
      std::uint64_t word = 0;
      std::size_t count = std::min(size, sizeof word);
      std::memcpy(&word, bytes, count);
      add_word(word);
      bytes += count;
      size -= count;
    }
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add_word(std::uint64_t word) { lanes_[0] = mixed(lanes_[0], word); }

  std::uint64_t value() const {
    std::uint64_t value = 0;
    for (std::uint64_t lane : lanes_) value = mixed(value, lane);
    return mixed(value, 0);
  }

 private:
  static constexpr std::size_t lanes = 4;

  // An odd factor and the shift are bijections; the factor is 2⁶⁴ divided by the golden ratio.
  static std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state ^ state >> 29;
  }

  std::array<std::uint64_t, lanes> lanes_{1, 2, 3, 4};
};

std::uint64_t checksum_of(const NamedTensor& named) {
  Checksum checksum;
  checksum.add(named.name);
  checksum.add(name_of(named.tensor.dtype()));
  for (std::int64_t size : named.tensor.shape()) checksum.add_word(static_cast<std::uint64_t>(size));
  Tensor packed = contiguous_if_needed(named.tensor);
  wait_for(packed, {});
  checksum.add(packed.body().data, static_cast<std::size_t>(packed.numel()) * size_of(packed.dtype()));
  return checksum.value();
}

std::uint64_t checksum_of(const io::Metadata& metadata) {
  Checksum checksum;
  for (const auto& [key, words] : metadata) {
    if (key == checksums_key) continue;
    checksum.add(key);
    checksum.add(words);
  }
  return checksum.value();
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t to = std::min(text.find(' ', from), text.size());
    words.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

std::string digits_of(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace

std::string checksums_of(std::span<const NamedTensor> tensors, const io::Metadata& metadata) {
  NoRecord pause;
  std::vector<std::string> checksums;
  for (const NamedTensor& named : tensors) checksums.push_back(digits_of(checksum_of(named)));
  checksums.push_back(digits_of(checksum_of(metadata)));
  return fmt::format("{}", fmt::join(checksums, " "));
}

std::string damage_of(const io::Contents& contents) {
  NoRecord pause;
  auto found = contents.metadata.find(checksums_key);
  if (found == contents.metadata.end()) return "is no checkpoint: it has no checksums";
  std::vector<std::string> checksums = split_words(found->second);
  if (checksums.size() != contents.tensors.size() + 1)
    return fmt::format("is damaged: it has {} checksums for {} tensors", checksums.size(), contents.tensors.size());
  if (checksums.back() != digits_of(checksum_of(contents.metadata))) return "has damaged metadata";
  for (std::size_t i = 0; i < contents.tensors.size(); ++i)
    if (checksums[i] != digits_of(checksum_of(contents.tensors[i])))
      return fmt::format("has a damaged tensor {}", shown(contents.tensors[i].name));
  return {};
}

}  // namespace reel::detail
