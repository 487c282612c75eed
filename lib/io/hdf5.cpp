#include <reel/io/hdf5.h>

#include <exception>
#include <memory>
#include <optional>

#include "../core/modules/module.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "element_layout.h"
#include "elements.h"
#include "file.h"
#include "file_magic.h"
#include "modules/hdf5_table.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* hdf5_name = "io::load_hdf5";
// Deflate expands a byte to at most 1032.
constexpr std::uint64_t most_expanded = 1032;

// The dtype that holds a dataset's elements, if one does. Integers that no dtype has are widened.
std::optional<DType> dtype_for(Hdf5Type type) {
  if (std::optional<DType> own = find_dtype(type.kind, type.bytes)) return own;
  bool is_integer = type.kind == NumberKind::signed_integer || type.kind == NumberKind::unsigned_integer;
  if (!is_integer || type.bytes == 0 || type.bytes > 4) return {};
  return type.bytes < 4 ? i32 : i64;
}

class Hdf5File {
 public:
  Hdf5File(const std::string& path, Location where)
      : path_(path),
        where_(where),
        bytes_(Reader(hdf5_name, path, where).size()),
        table_(open_module<Hdf5Table, FileError>(hdf5_name, where)) {
    ModuleMessage message;
    open_ = {table_.open(path.c_str(), message), Close{&table_}};
    if (!open_) refuse(printable(message.text));
  }

  std::vector<NamedTensor> tensors() {
    ModuleMessage message;
    if (!table_.visit(open_.get(), {this, visit}, message)) refuse(printable(message.text));
    if (failure_) std::rethrow_exception(failure_);
    std::vector<NamedTensor> tensors;
    for (const Found& found : found_) tensors.push_back({found.path, read(found)});
    return tensors;
  }

 private:
  struct Found {
    std::string path;
    Shape shape;
    DType dtype;
  };
  struct Close {
    const Hdf5Table* table;
    void operator()(OpenHdf5* file) const { table->close(file); }
  };

  [[noreturn]] void refuse(const std::string& predicate) const {
    fail<FileError>(hdf5_name, where_, "'{}' {}", printable(path_), predicate);
  }

  // Exceptions wait until the library has returned.
  static bool visit(void* object, const Hdf5Dataset& dataset) noexcept {
    auto& own = *static_cast<Hdf5File*>(object);
    try {
      own.add(dataset);
      return true;
    } catch (...) {
      own.failure_ = std::current_exception();
      return false;
    }
  }

  void add(const Hdf5Dataset& dataset) {
    std::string name = shown(dataset.path);
    if (dataset.rank > max_rank)
      refuse(fmt::format("has a dataset {} of {} axes, more than the {} that reel's tensors can have", name,
                         dataset.rank, max_rank));
    std::optional<DType> dtype = dtype_for(dataset.type);
    if (!dtype)
      refuse(
          fmt::format("has a dataset {} of a type of numbers that reel has not: convert it before it is saved", name));
    if (dataset.is_elsewhere) refuse(fmt::format("has a dataset {} in other files, which are not read", name));
    if (dataset.has_other_filters)
      refuse(fmt::format("has a dataset {} that is compressed otherwise than once by gzip, which is not read", name));
    Shape shape;
    for (std::uint32_t i = 0; i < dataset.rank; ++i) shape.push_back(static_cast<std::int64_t>(dataset.sizes[i]));
    std::optional<std::int64_t> count = element_count(shape);
    if (!count) refuse(fmt::format("has a dataset {} whose shape {} is larger than any file", name, to_string(shape)));
    check_stored(dataset, name, *count);
    found_.push_back({dataset.path, shape, *dtype});
  }

  void check_stored(const Hdf5Dataset& dataset, const std::string& name, std::int64_t count) {
    // Datasets that overlap would let a small file have large contents.
    if (dataset.stored_bytes > bytes_ - stored_)
      refuse(fmt::format("has {} bytes, and its datasets are said to have more: it is faulty", bytes_));
    stored_ += dataset.stored_bytes;
    std::uint64_t most = dataset.stored_bytes * (dataset.is_compressed ? most_expanded : 1);
    if (static_cast<std::uint64_t>(count) > most / dataset.type.bytes)
      refuse(fmt::format("has a dataset {} of {} elements in {} bytes, which cannot hold them", name, count,
                         dataset.stored_bytes));
  }

  Tensor read(const Found& found) const {
    Tensor tensor = allocate(context(), {found.shape, found.dtype, cpu}, hdf5_name, where_);
    if (tensor.numel() == 0) return tensor;
    void* elements = tensor.body().data;
    ModuleMessage message;
    Hdf5Type type{number_kind(found.dtype), static_cast<std::uint8_t>(size_of(found.dtype))};
    if (!table_.read(open_.get(), found.path.c_str(), type, elements, message))
      refuse(fmt::format("{} ({})", printable(message.text), shown(found.path)));
    if (found.dtype == boolean) make_bools(new_elements_of(tensor));
    return tensor;
  }

  const std::string& path_;
  Location where_;
  std::uint64_t bytes_, stored_ = 0;
  const Hdf5Table& table_;
  std::unique_ptr<OpenHdf5, Close> open_;
  std::vector<Found> found_;
  std::exception_ptr failure_;
};

}  // namespace

Contents load_hdf5(const std::string& path, Location where) {
  CallerScope caller(where);
  return {Hdf5File(path, where).tensors(), {}};
}

}  // namespace reel::io
