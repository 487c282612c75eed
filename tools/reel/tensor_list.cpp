#include "tensor_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include <reel/io/hdf5.h>
#include <reel/io/numpy.h>
#include <reel/io/pytorch.h>
#include <reel/io/tensor_file.h>

#include "io/file.h"
#include "io/file_magic.h"
#include "io/numpy/npy_header.h"
#include "io/zip_archive.h"

namespace {

namespace io = reel::io;

constexpr const char* function = "inspect";

constexpr std::uint64_t longest_header_bytes = 100'000'000;  // of a safetensors file

// Reads the header of the array `name`, a file or a member of one; `read(bytes)` gives its next bytes.
template <class Read>
io::NpyHeader npy_header(const std::string& name, Read read) {
  std::string signature(io::npy_signature_bytes, '\0');
  read(signature);
  std::string count(io::npy_count_bytes(signature), '\0');
  read(count);
  std::uint64_t size = 0;
  for (std::size_t i = count.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(count[i]);
  if (size > io::most_npy_header_bytes) throw std::runtime_error(name + " has a header that is too long");
  std::string text(size, '\0');
  read(text);
  try {
    return io::parsed_npy(text, true);
  } catch (const std::exception& error) {
    throw std::runtime_error(name + " " + error.what());
  }
}

TensorList list_npy(const std::string& path) {
  io::Reader file(function, path, {});
  std::uint64_t offset = 0;
  io::NpyHeader header = npy_header(path, [&](std::string& bytes) {
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    offset += bytes.size();
  });
  if (header.elements_bytes != file.size() - offset)
    throw std::runtime_error(fmt::format("{} has {} bytes of elements, but its header says {}", path,
                                         file.size() - offset, header.elements_bytes));
  TensorList list{"npy", path, {}, {}, 0};
  list.tensors.push_back(
      {"array", header.shape, header.element.dtype, [path] { return io::load_npy(path, {.widen = true}, {}); }});
  return list;
}

TensorList list_npz(const std::string& path) {
  TensorList list{"npz", path, {}, {}, 0};
  reel::detail::ZipArchive archive(function, path, {});
  // All arrays are loaded together when the first one is asked for.
  auto loaded = std::make_shared<io::Contents>();
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    std::string name = archive.members()[i].name;
    if (!name.ends_with(".npy"))
      throw std::runtime_error(fmt::format("{} has the member {}, which is no array", path, name));
    reel::detail::ZipArchive::MemberReader reader(archive, i);
    io::NpyHeader header = npy_header(fmt::format("{}/{}", path, name), [&](std::string& bytes) {
      reader.read(std::as_writable_bytes(std::span(bytes)));
    });
    name.resize(name.size() - 4);
    list.tensors.push_back({name, header.shape, header.element.dtype, [path, name, loaded] {
                              if (loaded->tensors.empty()) *loaded = io::load_npz(path, {.widen = true}, {});
                              return loaded->at(name);
                            }});
  }
  return list;
}

// Refuses a safetensors file whose header, or an index whose size, needs much memory to be read.
void check_header(const std::string& path) {
  io::Reader file(function, path, {});
  std::string start = file.beginning(8);
  std::uint64_t size = 0;
  for (std::size_t i = start.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(start[i]);
  if (path.ends_with(".json")) size = file.size();
  // A longer one is no safetensors file, as `open` says.
  if (size > most_unasked_header_bytes && size <= longest_header_bytes)
    throw std::runtime_error(
        fmt::format("{} has a header of {} bytes, more than the {} that are read unasked; --statistics reads it", path,
                    size, most_unasked_header_bytes));
}

TensorList list_mapped(const std::string& path, bool whole) {
  if (!whole) check_header(path);
  auto file = std::make_shared<io::TensorFile>(io::open(path, {}));
  TensorList list{"safetensors", path, {}, file->metadata(), 0};
  for (const std::string& name : file->names())
    list.tensors.push_back({name, file->shape({name, {}}), file->dtype({name, {}}), [file, name] {
                              return (*file)[{name, {}}];
                            }});
  return list;
}

TensorList list_loaded(const std::string& format, const std::string& path, bool whole,
                       io::Contents (*load)(const std::string&, reel::Location)) {
  std::uint64_t size = std::filesystem::file_size(path);
  if (size > most_unasked_bytes && !whole)
    throw std::runtime_error(fmt::format("{} has {} bytes, and a file of {} has to be read whole; --statistics does so",
                                         path, size, format));
  io::Contents contents = load(path, {});
  TensorList list{format, path, {}, contents.metadata, 0};
  for (const reel::NamedTensor& one : contents.tensors)
    list.tensors.push_back(
        {one.name, one.tensor.shape(), one.tensor.dtype(), [tensor = one.tensor] { return tensor; }});
  return list;
}

// The newest snapshot of a folder of checkpoints.
std::string latest_in(const std::string& folder) {
  std::string path = folder + "/latest", name;
  try {
    name = io::Reader(function, path, {}, 1).beginning(1024);
  } catch (const io::FileError&) {
    // It has no such file, or a link.
  }
  name.resize(std::min(name.find('\n'), name.size()));
  if (name.empty() || name.find('/') != std::string::npos)
    throw std::runtime_error(
        fmt::format("{} is a folder without checkpoints: it has no file `latest` that names one", folder));
  path = folder + "/" + name;
  io::Reader snapshot(function, path, {}, 1);  // refuses a link
  return path;
}

TensorList list_file(const std::string& path, bool whole) {
  std::string magic = io::Reader(function, path, {}).beginning(8);
  if (path.ends_with(".json")) return list_mapped(path, whole);
  if (magic.starts_with("\x93NUMPY")) return list_npy(path);
  if (path.ends_with(".npz")) return list_npz(path);
  switch (io::format_of_file(path, {})) {
    case io::WeightsFormat::torch_save: return list_loaded("PyTorch", path, whole, io::load_pytorch);
    case io::WeightsFormat::hdf5: return list_loaded("HDF5", path, whole, io::load_hdf5);
    default: return list_mapped(path, whole);
  }
}

}  // namespace

TensorList list_tensors(const std::string& path, bool whole) {
  std::error_code ignored;
  TensorList list = list_file(std::filesystem::is_directory(path, ignored) ? latest_in(path) : path, whole);
  for (const ListedTensor& tensor : list.tensors) list.bytes += tensor.bytes();
  return list;
}
