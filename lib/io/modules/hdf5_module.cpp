#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include <reel/detail/immovable.h>

#include "hdf5_table.h"

namespace reel::detail {

struct OpenHdf5 {
  hid_t file;
};

namespace {

constexpr unsigned most_axes = 8;
// HDF5 takes time with the square of the depth; no library nests layers as deep.
constexpr std::ptrdiff_t deepest_group = 64;
// The header of an object has more. Source: The HDF Group, "HDF5 File Format Specification" 3.0, IV.A.1.
constexpr hsize_t least_object_bytes = 12;

// Debian's HDF5 is not built for several threads.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Keeps HDF5 from printing its errors, and from loading filters that a file names, during a call.
class QuietCall : Immovable {
 public:
  QuietCall() : lock_(library_mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5Eclear2(H5E_DEFAULT);
    H5PLget_loading_state(&plugins_);
    H5PLset_loading_state(0);
  }
  ~QuietCall() {
    H5PLset_loading_state(plugins_);
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, print_, data_);
  }

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
  unsigned plugins_ = 0;
};

// An identifier of HDF5, closed by the destructor.
class Identifier : Immovable {
 public:
  Identifier(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Identifier() {
    if (id_ >= 0) close_(id_);
  }
  bool is_valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Writes what HDF5 says of the innermost function that failed.
void write_failure(ModuleMessage& message, const char* predicate) {
  struct Innermost {
    char words[120] = "";
  } innermost;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
        auto& found = *static_cast<Innermost*>(data);
        if (found.words[0] == '\0' && error->desc) std::snprintf(found.words, sizeof found.words, "%s", error->desc);
        return 0;
      },
      &innermost);
  std::snprintf(message.text, sizeof message.text, "%s: %s", predicate, innermost.words);
}

OpenHdf5* open_file(const char* path, ModuleMessage& message) noexcept {
  QuietCall call;
  Identifier access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // A lock on a file that is only read would fail on some file systems.
  H5Pset_file_locking(access.get(), false, true);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access.get());
  if (file < 0) {
    write_failure(message, "is no readable HDF5 file");
    return nullptr;
  }
  auto* made = new (std::nothrow) OpenHdf5{file};
  if (!made) {
    H5Fclose(file);
    std::snprintf(message.text, sizeof message.text, "needs more memory than there is");
  }
  return made;
}

void close_file(OpenHdf5* file) noexcept {
  QuietCall call;
  H5Fclose(file->file);
  delete file;
}

// h5py has bool as an enumeration of two names.
bool is_boolean(hid_t type) {
  return H5Tget_class(type) == H5T_ENUM && H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1;
}

// False: the elements are no numbers.
bool find_type(hid_t type, Hdf5Type& found) {
  std::size_t size = H5Tget_size(type);
  H5T_class_t kind = H5Tget_class(type);
  bool is_signed = kind == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  found = {NumberKind::floating, static_cast<std::uint8_t>(std::min<std::size_t>(size, 255))};
  if (is_boolean(type))
    found.kind = NumberKind::boolean;
  else if (kind == H5T_INTEGER)
    found.kind = is_signed ? NumberKind::signed_integer : NumberKind::unsigned_integer;
  else
    return kind == H5T_FLOAT;
  return true;
}

void describe_storage(hid_t dataset, Hdf5Dataset& described) {
  Identifier creation(H5Dget_create_plist(dataset), H5Pclose);
  described.stored_bytes = H5Dget_storage_size(dataset);
  described.is_elsewhere = H5Pget_external_count(creation.get()) > 0 || H5Pget_layout(creation.get()) == H5D_VIRTUAL;
  int filters = std::max(H5Pget_nfilters(creation.get()), 0), others = 0;
  for (int i = 0; i < filters; ++i) {
    std::size_t values = 0;
    H5Z_filter_t filter =
        H5Pget_filter2(creation.get(), static_cast<unsigned>(i), nullptr, &values, nullptr, 0, nullptr, nullptr);
    described.is_compressed |= filter == H5Z_FILTER_DEFLATE;
    others += filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32;
  }
  described.has_other_filters = others > (described.is_compressed ? 1 : 0);
}

// Returns 1 to go on, 0 for what is no dataset of numbers, −1 after a failure.
int describe(hid_t object, Hdf5Dataset& described) {
  Identifier type(H5Dget_type(object), H5Tclose), space(H5Dget_space(object), H5Sclose);
  if (!type.is_valid() || !space.is_valid()) return -1;
  if (!find_type(type.get(), described.type) || H5Sget_simple_extent_type(space.get()) == H5S_NULL) return 0;
  int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) return -1;
  described.rank = static_cast<std::uint32_t>(rank);
  hsize_t sizes[H5S_MAX_RANK] = {};
  if (H5Sget_simple_extent_dims(space.get(), sizes, nullptr) < 0) return -1;
  for (unsigned i = 0; i < most_axes; ++i) described.sizes[i] = sizes[i];
  describe_storage(object, described);
  return 1;
}

// A visit of all objects. An object that several groups have is visited in each, if it does not say so.
struct Visit {
  const Hdf5Visitor& visitor;
  hsize_t objects_left;
  const char* flaw = nullptr;
};

herr_t visit_object(hid_t group, const char* path, const H5O_info_t* info, void* data) {
  auto& visit = *static_cast<Visit*>(data);
  if (std::count(path, path + std::strlen(path), '/') >= deepest_group)
    visit.flaw = "has groups more than 64 deep in each other";
  else if (visit.objects_left-- == 0)
    visit.flaw = "has more objects than its bytes can hold: it is faulty";
  if (visit.flaw) return -1;
  if (info->type != H5O_TYPE_DATASET) return 0;
  Identifier dataset(H5Dopen2(group, path, H5P_DEFAULT), H5Dclose);
  if (!dataset.is_valid()) return -1;
  Hdf5Dataset described{};
  described.path = path;
  int is_described = describe(dataset.get(), described);
  if (is_described <= 0) return is_described;
  return visit.visitor.visit(visit.visitor.object, described) ? 0 : 1;
}

bool visit_datasets(OpenHdf5* file, Hdf5Visitor visitor, ModuleMessage& message) noexcept {
  QuietCall call;
  hsize_t bytes = 0;
  H5Fget_filesize(file->file, &bytes);
  Visit visit{visitor, bytes / least_object_bytes};
  if (H5Ovisit2(file->file, H5_INDEX_NAME, H5_ITER_INC, visit_object, &visit, H5O_INFO_BASIC) >= 0) return true;
  if (visit.flaw)
    std::snprintf(message.text, sizeof message.text, "%s", visit.flaw);
  else
    write_failure(message, "has a part that cannot be read");
  return false;
}

hid_t half_type() {
  hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

hid_t memory_type(Hdf5Type type, hid_t dataset) {
  if (type.kind == NumberKind::boolean) return H5Dget_type(dataset);  // one byte each
  bool is_signed = type.kind == NumberKind::signed_integer;
  if (type.kind == NumberKind::floating)
    return type.bytes == 2 ? half_type() : H5Tcopy(type.bytes == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE);
  switch (type.bytes) {
    case 1: return H5Tcopy(is_signed ? H5T_STD_I8LE : H5T_STD_U8LE);
    case 2: return H5Tcopy(is_signed ? H5T_STD_I16LE : H5T_STD_U16LE);
    case 4: return H5Tcopy(is_signed ? H5T_STD_I32LE : H5T_STD_U32LE);
    default: return H5Tcopy(is_signed ? H5T_STD_I64LE : H5T_STD_U64LE);
  }
}

bool read_dataset(OpenHdf5* file, const char* path, Hdf5Type type, void* elements, ModuleMessage& message) noexcept {
  QuietCall call;
  Identifier dataset(H5Dopen2(file->file, path, H5P_DEFAULT), H5Dclose);
  Identifier memory(dataset.is_valid() ? memory_type(type, dataset.get()) : H5I_INVALID_HID, H5Tclose);
  if (memory.is_valid() && H5Dread(dataset.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements) >= 0)
    return true;
  write_failure(message, "has a dataset that cannot be read");
  return false;
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static constexpr Hdf5Table table{open_file, close_file, visit_datasets, read_dataset};
  return table_if_compatible(table, version, bytes);
}
