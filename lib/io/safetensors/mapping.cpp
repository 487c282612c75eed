#include "mapping.h"

#include <sys/mman.h>

#include <cerrno>

#include <reel/io/safetensors.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../file.h"

namespace reel::io {

Mapping::Mapping(const char* function, const Reader& file, const std::string& path, Location where)
    : size_(file.size()) {
  if (size_ == 0) return;
  // No swap is reserved for pages that are hardly ever written to: files may be larger than the memory.
  void* begin = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(), 0);
  if (begin == MAP_FAILED)
    detail::fail<FileError>(function, where, "cannot map '{}' into memory: {}", detail::printable(path),
                            words_of(errno));
  begin_ = static_cast<std::byte*>(begin);
}

Mapping::~Mapping() {
  if (begin_) munmap(begin_, size_);
}

}  // namespace reel::io
