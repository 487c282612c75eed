#include <reel/detail/fork_safe_mutex.h>
#include <reel/io/tensor_file.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "../../core/foreign_memory.h"
#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/storage.h"
#include "../elements.h"
#include "../file.h"
#include "header.h"
#include "mapping.h"
#include "shard_index.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* open_name = "io::open";
constexpr const char* file_name = "io::TensorFile";

void release_mapping(void* owner) { delete static_cast<std::shared_ptr<Mapping>*>(owner); }

bool has_other_bools(std::span<const std::byte> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
}

Tensor copied(const Described& described, std::span<const std::byte> bytes, Location where) {
  Tensor tensor = allocate(context(), {described.shape, described.dtype, cpu}, file_name, where);
  std::copy(bytes.begin(), bytes.end(), new_elements_of(tensor).begin());
  return tensor;
}

Tensor mapped(const std::shared_ptr<Mapping>& mapping, const Described& described, std::span<std::byte> bytes,
              Location where) {
  bool is_aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(described.dtype) == 0;
  if (bytes.empty() || !is_aligned) return copied(described, bytes, where);
  auto owner = std::make_unique<std::shared_ptr<Mapping>>(mapping);
  ForeignMemory memory{bytes.data(), bytes.size(), cpu, owner.get(), release_mapping};
  Tensor tensor = adopt_memory(memory, bytes.data(), described.shape, contiguous_strides(described.shape),
                               described.dtype, file_name, where);
  static_cast<void>(owner.release());
  return tensor;
}

}  // namespace

struct TensorFile::State {
  // A mapped file.
  struct Shard {
    std::shared_ptr<Mapping> mapping;
    std::uint64_t begin;  // of the elements
    Header header;
  };
  struct Entry {
    std::size_t shard;
    Described described;
    Tensor tensor;  // once it was asked for; guarded by the mutex
  };

  std::string path;
  std::vector<Shard> shards;
  std::deque<Entry> entries;
  std::unordered_map<std::string_view, Entry*> by_name;  // names of the entries
  Metadata metadata;
  detail::ForkSafeMutex mutex;

  void add(std::size_t shard, Described described) {
    entries.push_back({shard, std::move(described), {}});
    by_name.emplace(entries.back().described.name, &entries.back());
  }

  static Shard open_shard(const std::string& path, Location where) {
    Reader file(open_name, path, where);
    Shard shard;
    shard.header = read_header(open_name, file, path, where, shard.begin);
    shard.mapping = std::make_shared<Mapping>(open_name, file, path, where);
    return shard;
  }

  void open_single(Location where) {
    shards.push_back(open_shard(path, where));
    for (Described& described : shards[0].header.tensors) add(0, std::move(described));
    metadata = std::move(shards[0].header.metadata);
  }

  void open_index(const ShardIndex& index, Location where) {
    std::map<std::string, std::size_t> shard_of;
    for (const auto& [name, shard] : index) shard_of.emplace(shard, 0);
    std::vector<std::unordered_map<std::string_view, Described*>> contents;
    for (auto& [shard, position] : shard_of) {
      position = shards.size();
      shards.push_back(open_shard(shard_path(path, shard), where));
      metadata.insert(shards.back().header.metadata.begin(), shards.back().header.metadata.end());
    }
    for (Shard& shard : shards) {
      contents.emplace_back();
      for (Described& described : shard.header.tensors) contents.back().emplace(described.name, &described);
    }
    for (const auto& [name, shard] : index) {
      std::size_t position = shard_of.at(shard);
      auto found = contents[position].find(name);
      if (found == contents[position].end())
        fail<FileError>(open_name, where, "'{}' says that {} has the tensor {}, which it lacks", printable(path),
                        shown(shard), shown(name));
      add(position, *found->second);
    }
  }

  Entry& entry(std::string_view name, Location where) {
    auto found = by_name.find(name);
    if (found == by_name.end())
      fail<Error>(file_name, where, "there is no tensor named {} among {} in '{}'", shown(name), entries.size(),
                  printable(path));
    return *found->second;
  }

  Tensor tensor(Entry& entry, Location where) {
    std::lock_guard lock(mutex);
    if (entry.tensor.defined()) return entry.tensor;
    const Shard& shard = shards[entry.shard];
    const Described& described = entry.described;
    std::span<std::byte> bytes =
        shard.mapping->bytes().subspan(shard.begin + described.begin, described.end - described.begin);
    // Other values of a C++ bool are undefined; pages that need no change are shared with other processes.
    if (described.dtype == boolean && has_other_bools(bytes)) make_bools(bytes);
    return entry.tensor = mapped(shard.mapping, described, bytes, where);
  }
};

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (const State::Entry& entry : state_->entries) names.push_back(entry.described.name);
  return names;
}

bool TensorFile::contains(std::string_view name) const { return state_->by_name.contains(name); }

Shape TensorFile::shape(TensorName name) const { return state_->entry(name.text, name.where).described.shape; }

DType TensorFile::dtype(TensorName name) const { return state_->entry(name.text, name.where).described.dtype; }

Tensor TensorFile::operator[](TensorName name) const {
  return state_->tensor(state_->entry(name.text, name.where), name.where);
}

const Metadata& TensorFile::metadata() const { return state_->metadata; }

Contents TensorFile::contents(Location where) const {
  Contents all;
  all.metadata = state_->metadata;
  for (State::Entry& entry : state_->entries)
    all.tensors.push_back({entry.described.name, state_->tensor(entry, where)});
  return all;
}

TensorFile open(const std::string& path, Location where) {
  auto state = std::make_shared<TensorFile::State>();
  state->path = path;
  Reader file(open_name, path, where);
  if (is_shard_index(file))
    state->open_index(read_shard_index(open_name, file, path, where), where);
  else
    state->open_single(where);
  return TensorFile(std::move(state));
}

}  // namespace reel::io
