#include <reel/io/pytorch.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "elements.h"
#include "file_magic.h"
#include "pickle.h"
#include "torch_save.h"
#include "zip_archive.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* pytorch_name = "io::load_pytorch";
constexpr std::string_view pickle_member = "/data.pkl";

// The first bytes of a file that tell its format.
constexpr std::uint64_t telling_bytes = 512;

// Source: PyTorch's torch/serialization.py: a pickle of a number is the first thing in a file of the old format.
bool is_old_format(std::string_view first) { return first.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46"); }
bool is_tar(std::string_view first) { return first.size() >= 262 && first.substr(257, 5) == "ustar"; }
// A file of safetensors could begin with these four bytes, the count of its header's.
bool is_zip(std::string_view first) { return first.starts_with("PK\3\4") && (first.size() < 9 || first[8] != '{'); }

void check_format(const std::string& path, Location where) {
  std::string first = Reader(pytorch_name, path, where).beginning(telling_bytes);
  if (is_old_format(first) || is_tar(first))
    fail<FileError>(pytorch_name, where,
                    "'{}' is in the format that PyTorch wrote before version 1.6: load it in Python and save it again "
                    "with torch.save(torch.load(file), new_file)",
                    printable(path));
  if (!is_zip(first))
    fail<FileError>(pytorch_name, where, "'{}' is no file of torch.save, which is a zip archive with a data.pkl",
                    printable(path));
}

class TorchArchive {
 public:
  TorchArchive(const std::string& path, Location where) : zip_(pytorch_name, path, where), path_(path), where_(where) {
    const auto& members = zip_.members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      indices_.emplace(members[i].name, i);
      if (!members[i].name.ends_with(pickle_member)) continue;
      std::string folder = members[i].name.substr(0, members[i].name.size() - pickle_member.size());
      if (folder.find('/') == folder.npos) folder_ = folder;
    }
    if (!folder_)
      refuse("is a zip archive without a data.pkl: it is no file of torch.save (io::load_npz reads those of NumPy)");
    std::string order = contents("byteorder", "little");
    if (order != "little" && order != "big") refuse(fmt::format("has the byte order {}", shown(order)));
    swaps_ = order == "big";
  }

  [[noreturn]] void refuse(const std::string& predicate) const {
    fail<FileError>(pytorch_name, where_, "'{}' {}", printable(path_), predicate);
  }

  std::string pickle() const { return contents("data.pkl", {}); }

  // A tensor of all elements of a storage.
  Tensor read(const PickleNode& storage) const {
    std::string name = fmt::format("{}/data/{}", *folder_, storage.text);
    auto found = indices_.find(name);
    if (found == indices_.end())
      refuse(fmt::format("has no member {}, where a tensor's elements should be", shown(name)));
    const ZipArchive::Member& member = stored(found->second);
    std::uint64_t bytes = member.size, element = size_of(storage.dtype);
    if (bytes / element != static_cast<std::uint64_t>(storage.numel))
      refuse(fmt::format("has {} bytes in {}, where {} elements of {} should be", bytes, shown(name), storage.numel,
                         name_of(storage.dtype)));
    Tensor all = allocate(context(), {Shape{storage.numel}, storage.dtype, cpu}, pytorch_name, where_);
    std::span elements(static_cast<std::byte*>(all.body().data), static_cast<std::size_t>(storage.numel) * element);
    ZipArchive::MemberReader reader(zip_, found->second);
    reader.read(elements);
    // A storage may end in fewer bytes than an element has. The checksum is compared at the end.
    std::array<std::byte, 8> rest;
    reader.read(std::span(rest).first(bytes % element));
    reader.finish();
    if (swaps_) swap_bytes(elements, element);
    if (storage.dtype == boolean) make_bools(elements);
    return all;
  }

 private:
  // PyTorch compresses nothing, so the sizes of all members are bounded by the file's.
  const ZipArchive::Member& stored(std::size_t index) const {
    const ZipArchive::Member& member = zip_.members()[index];
    if (member.size != member.stored_size)
      refuse(fmt::format("has a compressed member {}: load it in Python and save it again", shown(member.name)));
    return member;
  }

  std::string contents(std::string_view name, std::optional<std::string> otherwise) const {
    auto found = indices_.find(fmt::format("{}/{}", *folder_, name));
    if (found == indices_.end() && otherwise) return *otherwise;
    stored(found->second);
    return zip_.contents(found->second);
  }

  ZipArchive zip_;
  const std::string& path_;
  Location where_;
  std::unordered_map<std::string, std::size_t> indices_;
  std::optional<std::string> folder_;
  bool swaps_ = false;
};

// The storages that have been read, by their keys.
class TorchStorages {
 public:
  explicit TorchStorages(const TorchArchive& archive) : archive_(archive) {}

  const Tensor& at(const PickleNode& storage) {
    auto [found, is_new] = storages_.try_emplace(std::string(storage.text));
    if (is_new) found->second = archive_.read(storage);
    const Tensor& all = found->second;
    if (all.dtype() != storage.dtype || all.numel() != storage.numel)
      archive_.refuse(fmt::format("has the storage {} both as {} elements of {} and as {} of {}", shown(storage.text),
                                  all.numel(), name_of(all.dtype()), storage.numel, name_of(storage.dtype)));
    return all;
  }

 private:
  const TorchArchive& archive_;
  std::unordered_map<std::string, Tensor> storages_;
};

Tensor tensor_in(const Tensor& all, const ElementLayout& layout, Location where) {
  bool is_whole = layout.offset == 0 && layout.shape.rank() == 1 && layout.shape[0] == all.numel() &&
                  (layout.strides[0] == 1 || all.numel() < 2);
  return is_whole ? all : view_of(all, layout.shape, layout.strides, layout.offset, where);
}

}  // namespace

WeightsFormat format_of_file(const std::string& path, Location where) {
  std::string first = Reader("io::load_into", path, where).beginning(telling_bytes);
  if (is_zip(first) || is_old_format(first) || is_tar(first)) return WeightsFormat::torch_save;
  return first.starts_with("\x89HDF\r\n\x1a\n") ? WeightsFormat::hdf5 : WeightsFormat::safetensors;
}

Contents load_pytorch(const std::string& path, Location where) {
  CallerScope caller(where);
  check_format(path, where);
  TorchArchive archive(path, where);
  std::string pickle = archive.pickle();
  PickleMachine machine(pickle);
  PickledTensors found;
  try {
    found = tensors_in(machine.run(), pickle.size());
  } catch (const std::runtime_error& flaw) {
    archive.refuse(flaw.what());
  }
  Contents contents;
  contents.metadata = std::move(found.words);
  contents.metadata[format_key] = torch_save_format;
  TorchStorages storages(archive);
  for (const PickledTensor& pickled : found.tensors) {
    const Tensor& all = storages.at(*pickled.tensor->storage);
    contents.tensors.push_back({pickled.name, tensor_in(all, pickled.tensor->layout, where)});
  }
  return contents;
}

}  // namespace reel::io
