#include "zip_archive.h"

#include <algorithm>
#include <array>
#include <exception>
#include <unordered_set>

#include <reel/io/safetensors.h>

#include "../core/modules/module.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "positioned_file.h"

namespace reel::detail {

namespace {

// The bytes of a member in an archive's list, and of an archive's end, at least. Source: PKWARE, "APPNOTE.TXT - .ZIP
// File Format Specification" 6.3, 4.3.12 and 4.3.16.
constexpr std::uint64_t least_member_bytes = 46, least_archive_bytes = 22;

}  // namespace

ZipArchive::ZipArchive(const char* function, const std::string& path, Location where)
    : function_(function),
      path_(path),
      where_(where),
      file_(function, path, where),
      files_(open_module<FilesTable, io::FileError>(function, where)) {
  if (file_.size() < least_archive_bytes)
    fail<io::FileError>(function, where, "'{}' has {} bytes, fewer than any zip archive", printable(path),
                        file_.size());
  ModuleMessage message;
  open_ = {files_.open_zip(file_.descriptor(), message), Close{&files_}};
  if (!open_) fail<io::FileError>(function, where, "'{}' {}", printable(path), printable(message.text));
  read_members();
}

ZipArchive::~ZipArchive() = default;

void ZipArchive::read_members() {
  std::uint64_t count = files_.zip_members(open_.get()), stored = 0;
  if (count > file_.size() / least_member_bytes)
    fail<io::FileError>(function_, where_, "'{}' has {} bytes and is said to have {} members: it is faulty",
                        printable(path_), file_.size(), count);
  members_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ZipMember member;
    ModuleMessage message;
    if (!files_.zip_member(open_.get(), i, member, message))
      fail<io::FileError>(function_, where_, "'{}' {}", printable(path_), printable(message.text));
    // Members that overlap would let a small file have large contents.
    if (member.stored_size > file_.size() - stored)
      fail<io::FileError>(function_, where_, "'{}' has {} bytes, and its members are said to have more: it is faulty",
                          printable(path_), file_.size());
    stored += member.stored_size;
    members_.push_back({{member.name, member.name_size}, member.size, member.stored_size});
  }
  std::unordered_set<std::string_view> names;
  for (const Member& member : members_)
    if (!names.insert(member.name).second)
      fail<io::FileError>(function_, where_, "'{}' has two members named {}", printable(path_), shown(member.name));
}

ZipArchive::MemberReader::MemberReader(const ZipArchive& archive, std::size_t index)
    : archive_(archive), member_(archive.members_[index]) {
  ModuleMessage message;
  open_ = {archive.files_.open_member(archive.open_.get(), index, message), Close{&archive.files_}};
  if (!open_)
    fail<io::FileError>(archive.function_, archive.where_, "'{}', {}: the archive {}", printable(archive.path_),
                        shown(member_.name), printable(message.text));
}

std::size_t ZipArchive::MemberReader::read_some(std::span<std::byte> bytes) {
  ModuleMessage message;
  std::int64_t count = archive_.files_.read_member(open_.get(), bytes.data(), bytes.size(), message);
  if (count < 0)
    fail<io::FileError>(archive_.function_, archive_.where_, "'{}', {}: the archive {}", printable(archive_.path_),
                        shown(member_.name), printable(message.text));
  return static_cast<std::size_t>(count);
}

void ZipArchive::MemberReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t count = read_some(bytes);
    if (count == 0)
      fail<io::FileError>(archive_.function_, archive_.where_, "'{}', {}: the member ends {} bytes early",
                          printable(archive_.path_), shown(member_.name), bytes.size());
    bytes = bytes.subspan(count);
  }
}

void ZipArchive::MemberReader::finish() {
  std::byte more;
  if (read_some({&more, 1}) > 0)
    fail<io::FileError>(archive_.function_, archive_.where_, "'{}', {}: the member is longer than it should be",
                        printable(archive_.path_), shown(member_.name));
}

// The text grows as bytes come out of the archive, which may have fewer than it says.
std::string ZipArchive::contents(std::size_t index) const {
  constexpr std::size_t most_at_once = std::size_t{1} << 20;
  MemberReader reader(*this, index);
  std::uint64_t left = members_[index].size;
  std::string text;
  while (left > 0) {
    std::size_t before = text.size(), count = std::min<std::uint64_t>(left, most_at_once);
    text.resize(before + count);
    reader.read(std::as_writable_bytes(std::span(text)).subspan(before));
    left -= count;
  }
  reader.finish();
  return text;
}

void write_zip(const char* function, const std::string& path, std::span<const NewZipMember> members, bool compresses,
               Location where) {
  const auto& files = open_module<FilesTable, io::FileError>(function, where);
  std::vector<ZipEntry> entries;
  for (const NewZipMember& member : members)
    entries.push_back(
        {member.name.c_str(), member.head.data(), member.head.size(), member.elements.data(), member.elements.size()});
  io::AtomicFile file(function, path, where);
  if (entries.empty()) {
    // libzip removes an archive without members instead of writing its end.
    constexpr std::array<char, least_archive_bytes> end{'P', 'K', 5, 6};
    file.write(std::as_bytes(std::span(end)));
    return file.commit();
  }
  PositionedFile target{file};
  ModuleMessage message;
  bool done = files.write_zip(entries.data(), entries.size(), compresses, target.sink(), message);
  if (target.failure) std::rethrow_exception(target.failure);
  if (!done) fail<io::FileError>(function, where, "'{}' {}", printable(path), printable(message.text));
  file.commit();
}

}  // namespace reel::detail
