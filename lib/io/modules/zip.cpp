#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "files_table.h"

namespace reel::detail {

struct OpenArchive {
  zip_t* zip;
};

struct OpenMember {
  zip_file_t* file;
};

namespace {

// Deflate expands a byte to at most 1032.
constexpr std::uint64_t most_expansion = 1032;

OpenArchive* open_zip(int descriptor, ModuleMessage& message) noexcept {
  int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  std::FILE* file = own < 0 ? nullptr : fdopen(own, "rb");
  if (!file) {
    if (own >= 0) ::close(own);
    write_message(message, "cannot be opened a second time: too many files are open");
    return nullptr;
  }
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_filep_create(file, 0, -1, &error);
  if (!source) std::fclose(file);
  zip_t* zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (source && !zip) zip_source_free(source);
  if (!zip) write_message(message, "is no complete zip archive: %s", zip_error_strerror(&error));
  zip_error_fini(&error);
  if (!zip) return nullptr;
  auto* archive = new (std::nothrow) OpenArchive{zip};
  if (!archive) {
    write_message(message, "needs more memory than there is");
    zip_discard(zip);
  }
  return archive;
}

void close_zip(OpenArchive* archive) noexcept {
  zip_discard(archive->zip);
  delete archive;
}

std::uint64_t zip_members(OpenArchive* archive) noexcept {
  return static_cast<std::uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(archive->zip, 0), 0));
}

bool zip_member(OpenArchive* archive, std::uint64_t index, ZipMember& member, ModuleMessage& message) noexcept {
  zip_stat_t found;
  zip_stat_init(&found);
  constexpr zip_uint64_t needed =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive->zip, index, ZIP_FL_ENC_GUESS, &found) != 0 || (found.valid & needed) != needed) {
    write_message(message, "has a member %llu without a description: %s", static_cast<unsigned long long>(index),
                  zip_strerror(archive->zip));
    return false;
  }
  auto number = static_cast<unsigned long long>(index);
  if (found.encryption_method != ZIP_EM_NONE) {
    write_message(message, "has an encrypted member (number %llu)", number);
    return false;
  }
  if (found.comp_method != ZIP_CM_STORE && found.comp_method != ZIP_CM_DEFLATE) {
    write_message(message,
                  "has a member (number %llu) that is neither stored nor deflated, but compressed by method %d", number,
                  int{found.comp_method});
    return false;
  }
  bool fits = found.comp_method == ZIP_CM_STORE ? found.size == found.comp_size
                                                : found.size / most_expansion <= found.comp_size;
  if (!fits) {
    write_message(message, "has a member (number %llu) of %llu bytes that is said to hold %llu, which is impossible",
                  number, static_cast<unsigned long long>(found.comp_size),
                  static_cast<unsigned long long>(found.size));
    return false;
  }
  member = {found.name, std::strlen(found.name), found.size, found.comp_size};
  return true;
}

OpenMember* open_member(OpenArchive* archive, std::uint64_t index, ModuleMessage& message) noexcept {
  zip_file_t* file = zip_fopen_index(archive->zip, index, 0);
  if (!file) {
    write_message(message, "has a member that cannot be read: %s", zip_strerror(archive->zip));
    return nullptr;
  }
  auto* member = new (std::nothrow) OpenMember{file};
  if (!member) {
    write_message(message, "needs more memory than there is");
    zip_fclose(file);
  }
  return member;
}

std::int64_t read_member(OpenMember* member, void* bytes, std::size_t count, ModuleMessage& message) noexcept {
  zip_int64_t read = zip_fread(member->file, bytes, count);
  if (read < 0)
    write_message(message, "has a member that cannot be read: %s",
                  zip_error_strerror(zip_file_get_error(member->file)));
  return read;
}

void close_member(OpenMember* member) noexcept {
  zip_fclose(member->file);
  delete member;
}

// The sink to which libzip writes an archive, with the position that it has reached.
struct Output {
  PositionedSink sink;
  std::uint64_t position = 0, end = 0;
  zip_error_t error{};

  bool write(const void* bytes, std::uint64_t count) {
    if (!sink.write(sink.object, position, bytes, count)) {
      zip_error_set(&error, ZIP_ER_WRITE, 0);
      return false;
    }
    position += count;
    end = std::max(end, position);
    return true;
  }
};

zip_int64_t answer(void* object, void* data, zip_uint64_t count, zip_source_cmd_t command) {
  auto& output = *static_cast<Output*>(object);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT:
      zip_stat_init(static_cast<zip_stat_t*>(data));
      static_cast<zip_stat_t*>(data)->size = 0;
      static_cast<zip_stat_t*>(data)->valid = ZIP_STAT_SIZE;
      return sizeof(zip_stat_t);
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&output.error, data, count);
    case ZIP_SOURCE_WRITE: return output.write(data, count) ? static_cast<zip_int64_t>(count) : -1;
    case ZIP_SOURCE_TELL_WRITE: return static_cast<zip_int64_t>(output.position);
    case ZIP_SOURCE_SEEK_WRITE: {
      zip_int64_t to = zip_source_seek_compute_offset(output.position, output.end, data, count, &output.error);
      if (to < 0) return -1;
      output.position = static_cast<std::uint64_t>(to);
      return 0;
    }
    // The archive is begun anew, so there is nothing to read.
    case ZIP_SOURCE_READ:
    case ZIP_SOURCE_TELL:
    case ZIP_SOURCE_SEEK:
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE: return 0;
    default: zip_error_set(&output.error, ZIP_ER_OPNOTSUPP, 0); return -1;
  }
}

bool add_entry(zip_t* zip, const ZipEntry& entry, bool compresses) {
  zip_buffer_fragment_t pieces[2];
  zip_uint64_t count = 0;
  // libzip 1.7.3 reads memory that it has not set if an empty piece precedes another.
  auto add = [&](const void* bytes, std::size_t size) {
    if (size > 0) pieces[count++] = {static_cast<zip_uint8_t*>(const_cast<void*>(bytes)), size};
  };
  add(entry.head, entry.head_size);
  add(entry.elements, entry.elements_size);
  zip_source_t* source = zip_source_buffer_fragment(zip, pieces, count, 0);
  if (!source) return false;
  zip_int64_t index = zip_file_add(zip, entry.name, source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  auto number = static_cast<zip_uint64_t>(index);
  // The first day that the format knows: equal contents give equal files.
  constexpr zip_uint16_t midnight = 0, first_of_1980 = 1 << 5 | 1;
  return zip_set_file_compression(zip, number, compresses ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(zip, number, midnight, first_of_1980, 0) == 0;
}

bool write_zip(const ZipEntry* entries, std::size_t count, bool compresses, PositionedSink sink,
               ModuleMessage& message) noexcept {
  Output output{sink};
  zip_error_init(&output.error);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_function_create(answer, &output, &error);
  zip_t* zip = target ? zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error) : nullptr;
  if (target && !zip) zip_source_free(target);
  if (!zip) write_message(message, "cannot be begun: %s", zip_error_strerror(&error));
  zip_error_fini(&error);
  if (!zip) return false;
  bool done = true;
  for (std::size_t i = 0; i < count && done; ++i) done = add_entry(zip, entries[i], compresses);
  if (done && zip_close(zip) == 0) return true;
  write_message(message, "cannot be written: %s", zip_strerror(zip));
  zip_discard(zip);
  return false;
}

}  // namespace

void fill_zip(FilesTable& table) {
  table.open_zip = open_zip;
  table.close_zip = close_zip;
  table.zip_members = zip_members;
  table.zip_member = zip_member;
  table.open_member = open_member;
  table.read_member = read_member;
  table.close_member = close_member;
  table.write_zip = write_zip;
}

}  // namespace reel::detail
