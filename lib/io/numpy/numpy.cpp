#include <reel/io/numpy.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <unordered_set>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/storage.h"
#include "../../core/utf8.h"
#include "../../ops/if_needed.h"
#include "../atomic_file.h"
#include "../elements.h"
#include "../file.h"
#include "../zip_archive.h"
#include "npy_header.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* load_npy_name = "io::load_npy";
constexpr const char* save_npy_name = "io::save_npy";
constexpr const char* load_npz_name = "io::load_npz";
constexpr const char* save_npz_name = "io::save_npz";
constexpr std::string_view npy_suffix = ".npy";
constexpr std::size_t most_member_name_bytes = 65535;

// A file, or a member of an archive, that is read from its beginning to its end.
struct ArraySource {
  const char* function;
  std::string name;  // for messages: "'a.npz', 'b.npy'"
  std::uint64_t size;
  std::function<void(std::span<std::byte>)> read;
  Location where;

  template <class... T>
  [[noreturn]] void refuse(fmt::format_string<T...> words, T&&... values) const {
    fail<FileError>(function, where, "{} {}", name, fmt::format(words, std::forward<T>(values)...));
  }
};

// Reads what precedes the elements. `elements_bytes`: the bytes that follow it.
NpyHeader read_npy_header(const ArraySource& source, bool widens, std::uint64_t& elements_bytes) {
  std::array<char, npy_signature_bytes> signature;
  std::array<unsigned char, 4> count{};
  if (source.size < signature.size()) source.refuse("has {} bytes, fewer than any array of NumPy's", source.size);
  source.read(std::as_writable_bytes(std::span(signature)));
  try {
    std::size_t count_bytes = npy_count_bytes({signature.data(), signature.size()});
    std::uint64_t before = signature.size() + count_bytes;
    if (source.size < before) source.refuse("is cut off within its header");
    source.read(std::as_writable_bytes(std::span(count).first(count_bytes)));
    std::uint64_t length = count[0] | count[1] << 8 | count[2] << 16 | std::uint64_t{count[3]} << 24;
    if (length > most_npy_header_bytes)
      source.refuse("says that its header has {} bytes, more than the {} that are read", length, most_npy_header_bytes);
    if (length > source.size - before)
      source.refuse("says that its header has {} bytes, but only {} follow: it is cut off", length,
                    source.size - before);
    std::string text(length, '\0');
    source.read(std::as_writable_bytes(std::span(text)));
    elements_bytes = source.size - before - length;
    return parsed_npy(text, widens);
  } catch (const std::runtime_error& flaw) {
    // Errors of reel are complete; the parser's are a predicate.
    if (dynamic_cast<const Error*>(&flaw)) throw;
    source.refuse("{}", flaw.what());
  }
}

void check_elements_size(const ArraySource& source, const NpyHeader& header, std::uint64_t elements_bytes) {
  if (header.elements_bytes == elements_bytes) return;
  source.refuse("has {} bytes of elements, but {} of {} take {}: it is {}", elements_bytes, to_string(header.shape),
                header.element.name, header.elements_bytes,
                elements_bytes < header.elements_bytes ? "cut off" : "longer than it should be");
}

template <class From, class To>
void widen(std::span<const std::byte> from, std::span<std::byte> to) {
  for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, &from[i * sizeof(From)], sizeof(From));
    To wide = value;
    std::memcpy(&to[i * sizeof(To)], &wide, sizeof(To));
  }
}

void widen_elements(const NpyElement& element, std::span<const std::byte> from, std::span<std::byte> to) {
  if (element.bytes == 4) return widen<std::uint32_t, std::int64_t>(from, to);
  widen<std::uint16_t, std::int32_t>(from, to);
}

void read_elements(const ArraySource& source, const NpyElement& element, std::span<std::byte> bytes) {
  std::vector<std::byte> narrow(element.is_widened() ? bytes.size() / size_of(element.dtype) * element.bytes : 0);
  std::span<std::byte> read = element.is_widened() ? std::span(narrow) : bytes;
  source.read(read);
  if (element.is_big_endian) swap_bytes(read, element.bytes);
  if (element.is_widened()) widen_elements(element, narrow, bytes);
  if (element.dtype == boolean) make_bools(bytes);
}

// Fortran's order is row-major with the axes reversed.
Tensor read_npy(const ArraySource& source, const NpyHeader& header) {
  Shape shape = header.shape;
  if (header.is_fortran) std::reverse(shape.begin(), shape.end());
  Tensor tensor = allocate(context(), {shape, header.element.dtype, cpu}, source.function, source.where);
  read_elements(source, header.element, new_elements_of(tensor));
  if (!header.is_fortran || shape.rank() < 2) return tensor;
  Shape reversed;
  for (int axis = shape.rank(); axis-- > 0;) reversed.push_back(axis);
  NoRecord pause;
  return permute(tensor, reversed);
}

// A member of a zip archive. Throws: FileError if it is larger than what remains of the limit.
class NpzMember {
 public:
  NpzMember(const ZipArchive& archive, std::size_t index, const std::string& path, Location where)
      : archive_(archive), member_(archive.members()[index]), index_(index), reader_(std::in_place, archive, index) {
    source_ = {load_npz_name, fmt::format("'{}', {}", printable(path), shown(member_.name)), member_.size,
               [this](std::span<std::byte> bytes) { reader_->read(bytes); }, where};
  }

  Tensor read(const NumpyOptions& options) {
    std::uint64_t elements_bytes;
    NpyHeader header = read_npy_header(source_, options.widen, elements_bytes);
    check_elements_size(source_, header, elements_bytes);
    // Contents that are far larger than the archive are decompressed once before memory is allocated for them.
    if (member_.size > 2 * archive_.file_size()) decompress_once();
    Tensor tensor = read_npy(source_, header);
    reader_->finish();
    return tensor;
  }

 private:
  void decompress_once() const {
    std::array<std::byte, 1 << 14> piece;
    ZipArchive::MemberReader reader(archive_, index_);
    std::uint64_t left = member_.size;
    while (left > 0) {
      std::span<std::byte> next = std::span(piece).first(std::min<std::uint64_t>(left, piece.size()));
      reader.read(next);
      left -= next.size();
    }
    reader.finish();
  }

  const ZipArchive& archive_;
  const ZipArchive::Member& member_;
  std::size_t index_;
  std::optional<ZipArchive::MemberReader> reader_;
  ArraySource source_;
};

void check_member(const ZipArchive::Member& member, const std::string& path, std::uint64_t& left,
                  const NumpyOptions& options, Location where) {
  if (!member.name.ends_with(npy_suffix))
    fail<FileError>(load_npz_name, where, "'{}' has a member {}, which is no array: its name does not end in .npy",
                    printable(path), shown(member.name));
  if (member.size == member.stored_size) return;
  if (member.size > left)
    fail<FileError>(
        load_npz_name, where,
        "'{}' has more than {} bytes of arrays when it is decompressed: .most_decompressed_bytes allows more",
        printable(path), options.most_decompressed_bytes);
  left -= member.size;
}

void check_npz(std::span<const NamedTensor> tensors, Location where) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined()) fail<Error>(save_npz_name, where, "{} is an undefined tensor", shown(named.name));
    if (!names.insert(named.name).second)
      fail<Error>(save_npz_name, where, "there are two tensors named {}", shown(named.name));
    if (find_not_utf8(named.name) != std::string::npos)
      fail<Error>(save_npz_name, where, "the name {} is not UTF-8", shown(named.name));
    if (named.name.find('\0') != std::string::npos)
      fail<Error>(save_npz_name, where, "the name {} has a NUL", shown(named.name));
    if (named.name.size() > most_member_name_bytes - npy_suffix.size())
      fail<Error>(save_npz_name, where, "the name {} has {} bytes, more than an archive can hold", shown(named.name),
                  named.name.size());
  }
}

}  // namespace

Tensor load_npy(const std::string& path, const NumpyOptions& options, Location where) {
  CallerScope caller(where);
  Reader file(load_npy_name, path, where);
  std::uint64_t reached = 0, elements_bytes;
  ArraySource source{load_npy_name, fmt::format("'{}'", printable(path)), file.size(),
                     [&](std::span<std::byte> bytes) {
                       file.read(reached, bytes);
                       reached += bytes.size();
                     },
                     where};
  NpyHeader header = read_npy_header(source, options.widen, elements_bytes);
  check_elements_size(source, header, elements_bytes);
  return read_npy(source, header);
}

void save_npy(const std::string& path, const Tensor& tensor, Location where) {
  CallerScope caller(where);
  if (!tensor.defined()) fail<Error>(save_npy_name, where, "the tensor is undefined");
  NoRecord pause;
  Tensor packed = to_if_needed(contiguous_if_needed(tensor), cpu);
  AtomicFile file(save_npy_name, path, where);
  std::string prelude = npy_prelude(packed.dtype(), packed.shape());
  file.write(std::as_bytes(std::span(prelude)));
  file.write(elements_of(packed));
  file.commit();
}

Contents load_npz(const std::string& path, const NumpyOptions& options, Location where) {
  CallerScope caller(where);
  ZipArchive archive(load_npz_name, path, where);
  Contents contents;
  std::uint64_t left = options.most_decompressed_bytes;
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    const ZipArchive::Member& member = archive.members()[i];
    check_member(member, path, left, options, where);
    contents.tensors.push_back({member.name.substr(0, member.name.size() - npy_suffix.size()),
                                NpzMember(archive, i, path, where).read(options)});
  }
  return contents;
}

void save_npz(const std::string& path, std::span<const NamedTensor> tensors, const NpzOptions& options,
              Location where) {
  CallerScope caller(where);
  check_npz(tensors, where);
  NoRecord pause;
  std::vector<Tensor> packed;
  std::vector<NewZipMember> members;
  for (const NamedTensor& named : tensors) {
    packed.push_back(to_if_needed(contiguous_if_needed(named.tensor), cpu));
    members.push_back({named.name + std::string(npy_suffix), npy_prelude(packed.back().dtype(), packed.back().shape()),
                       elements_of(packed.back())});
  }
  write_zip(save_npz_name, path, members, options.compress, where);
}

}  // namespace reel::io
