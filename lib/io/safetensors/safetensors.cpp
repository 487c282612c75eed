#include <reel/io/pytorch.h>
#include <reel/io/safetensors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/storage.h"
#include "../../ops/if_needed.h"
#include "../atomic_file.h"
#include "../elements.h"
#include "../file.h"
#include "../file_magic.h"
#include "header.h"
#include "own_file.h"
#include "shard_index.h"

namespace reel::io {

using namespace detail;

static_assert(std::endian::native == std::endian::little, "the format is little-endian, as elements are copied");

namespace {

constexpr const char* save_name = "io::save";
constexpr const char* load_name = "io::load";

void check_tensors(std::span<const NamedTensor> tensors, Location where) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined()) fail<Error>(save_name, where, "{} is an undefined tensor", shown(named.name));
    if (named.name == metadata_name) fail<Error>(save_name, where, "no tensor can have the name {}", metadata_name);
    if (!names.insert(named.name).second)
      fail<Error>(save_name, where, "there are two tensors named {}", shown(named.name));
  }
}

// The order of the tensors: those with the largest elements first, so that each tensor is aligned to its element size,
// for readers that map files.
std::vector<std::size_t> order_of(std::span<const NamedTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].tensor.dtype()) > size_of(tensors[b].tensor.dtype());
  });
  return order;
}

Header header_of(std::span<const NamedTensor> tensors, std::span<const std::size_t> order, const Metadata& metadata) {
  Header header;
  header.metadata = metadata;
  for (const NamedTensor& named : tensors)
    header.tensors.push_back({named.name, named.tensor.dtype(), named.tensor.shape(), 0, 0});
  std::uint64_t reached = 0;
  for (std::size_t i : order) {
    header.tensors[i].begin = reached;
    header.tensors[i].end = reached += byte_count(tensors[i].tensor);
  }
  return header;
}

// The beginning of a file, and the order of the tensors behind it.
struct Plan {
  std::vector<std::size_t> order;
  std::string header;
};

Plan planned(std::span<const NamedTensor> tensors, const Metadata& metadata, Location where) {
  check_tensors(tensors, where);
  Plan plan{order_of(tensors), {}};
  try {
    plan.header = text_of(header_of(tensors, plan.order, metadata));
  } catch (const std::runtime_error& flaw) {
    fail<Error>(save_name, where, "{}", flaw.what());
  }
  if (plan.header.size() > most_header_bytes)
    fail<Error>(save_name, where,
                "the names and words of {} tensors make a header of {} bytes, more than the {} that are allowed",
                tensors.size(), plan.header.size(), most_header_bytes);
  return plan;
}

// The tensors of a file that is no index.
Contents load_single(const Reader& file, const std::string& path, Location where) {
  std::uint64_t begin;
  Header header = read_header(load_name, file, path, where, begin);
  Contents contents;
  contents.metadata = std::move(header.metadata);
  for (const Described& described : header.tensors) {
    Tensor tensor = allocate(context(), {described.shape, described.dtype, cpu}, load_name, where);
    std::span bytes = new_elements_of(tensor);
    file.read(begin + described.begin, bytes);
    if (described.dtype == boolean) make_bools(bytes);
    contents.tensors.push_back({described.name, std::move(tensor)});
  }
  return contents;
}

// The tensors that an index names, file by file. These files are no indices: one could name itself.
Contents load_shards(const ShardIndex& index, const std::string& path, Location where) {
  std::map<std::string, std::vector<std::string>> names_of;
  for (const auto& [name, shard] : index) names_of[shard].push_back(name);
  Contents all;
  for (const auto& [shard, names] : names_of) {
    const std::string whole_path = shard_path(path, shard);
    Contents contents = load_single(Reader(load_name, whole_path, where), whole_path, where);
    all.metadata.insert(contents.metadata.begin(), contents.metadata.end());
    std::unordered_map<std::string_view, const Tensor*> found;
    for (const NamedTensor& named : contents.tensors) found.emplace(named.name, &named.tensor);
    for (const std::string& name : names) {
      auto tensor = found.find(name);
      if (tensor == found.end())
        fail<FileError>(load_name, where, "'{}' says that {} has the tensor {}, which it lacks", printable(path),
                        shown(shard), shown(name));
      all.tensors.push_back({name, *tensor->second});
    }
  }
  std::sort(all.tensors.begin(), all.tensors.end(),
            [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  return all;
}

}  // namespace

const Tensor* Contents::find(std::string_view name) const {
  auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& named) { return named.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

const Tensor& Contents::at(std::string_view name, Location where) const {
  if (const Tensor* found = find(name)) return *found;
  fail<Error>("io::Contents", where, "there is no tensor named {} among {}", shown(name), tensors.size());
}

void save(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata, Location where) {
  save(path, 0, tensors, metadata, where);
}

void save(const std::string& path, int own_names, std::span<const NamedTensor> tensors, const Metadata& metadata,
          Location where) {
  CallerScope caller(where);
  Plan plan = planned(tensors, metadata, where);
  AtomicFile file(save_name, path, where, own_names);
  auto length = std::bit_cast<std::array<std::byte, count_bytes>>(static_cast<std::uint64_t>(plan.header.size()));
  file.write(length);
  file.write(std::as_bytes(std::span(plan.header)));
  NoRecord pause;
  for (std::size_t i : plan.order) file.write(elements_of(to_if_needed(contiguous_if_needed(tensors[i].tensor), cpu)));
  file.commit();
}

void check_save(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                Location where) {
  CallerScope caller(where);
  planned(tensors, metadata, where);
  AtomicFile file(save_name, path, where);
}

Contents load(const std::string& path, Location where) {
  CallerScope caller(where);
  Reader file(load_name, path, where);
  if (format_of_file(path, where) == WeightsFormat::torch_save) return load_pytorch(path, where);
  if (is_shard_index(file)) return load_shards(read_shard_index(load_name, file, path, where), path, where);
  return load_single(file, path, where);
}

Contents load_own(const std::string& path, Location where) {
  CallerScope caller(where);
  return load_single(Reader(load_name, path, where, 1), path, where);
}

}  // namespace reel::io
