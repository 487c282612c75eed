#include "guard.h"

#include <reel/error.h>
#include <reel/io/weights.h>
#include <reel/threads.h>
#include <reel/version.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

namespace reel::detail {
namespace {

// Without an allocation, since memory may be what is missing.
struct LastError {
  reel_status status = REEL_OK;
  char text[4096] = "";
};
thread_local LastError last_error;

class Text {
 public:
  Text& operator<<(std::string_view more) noexcept {
    std::size_t count = std::min(more.size(), sizeof last_error.text - 1 - length_);
    // A character of several bytes is kept whole or left out.
    if (count < more.size())
      while (count > 0 && (static_cast<unsigned char>(more[count]) & 0xc0) == 0x80) --count;
    std::memcpy(last_error.text + length_, more.data(), count);
    last_error.text[length_ += count] = '\0';
    return *this;
  }

 private:
  std::size_t length_ = 0;
};

reel_status keep(reel_status status, const char* function, const std::exception& error) noexcept {
  last_error.status = status;
  Text() << function << ": " << error.what();
  return status;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-cognitive-complexity): one handler for each type.
reel_status keep_error(const char* function) noexcept {
  try {
    throw;
  } catch (const Refusal& error) {
    return keep(error.status(), function, error);
  } catch (const ShapeError& error) {
    return keep(REEL_SHAPE_ERROR, function, error);
  } catch (const DTypeError& error) {
    return keep(REEL_DTYPE_ERROR, function, error);
  } catch (const IndexError& error) {
    return keep(REEL_INDEX_ERROR, function, error);
  } catch (const DeviceError& error) {
    return keep(REEL_DEVICE_ERROR, function, error);
  } catch (const io::FileError& error) {
    return keep(REEL_FILE_ERROR, function, error);
  } catch (const io::MisfitError& error) {
    return keep(REEL_MISFIT_ERROR, function, error);
  } catch (const MemoryError& error) {
    return keep(REEL_MEMORY_ERROR, function, error);
  } catch (const Error& error) {
    return keep(REEL_ERROR, function, error);
  } catch (const std::bad_alloc&) {
    last_error.status = REEL_MEMORY_ERROR;
    Text() << function << ": there is not enough memory";
    return REEL_MEMORY_ERROR;
  } catch (const std::exception& error) {
    return keep(REEL_INTERNAL_ERROR, function, error);
  } catch (...) {
    last_error.status = REEL_INTERNAL_ERROR;
    Text() << function << ": what was thrown is no std::exception";
    return REEL_INTERNAL_ERROR;
  }
}

}  // namespace reel::detail

using namespace reel::detail;

int32_t reel_c_version() { return REEL_C_VERSION; }

const char* reel_version() { return reel::library_version().string; }

reel_status reel_last_status() { return last_error.status; }

const char* reel_last_error() { return last_error.text; }

const char* reel_status_name(int32_t status) {
  switch (status) {
    case REEL_OK: return "no error";
    case REEL_ERROR: return "error";
    case REEL_ARGUMENT_ERROR: return "argument error";
    case REEL_SHAPE_ERROR: return "shape error";
    case REEL_DTYPE_ERROR: return "dtype error";
    case REEL_INDEX_ERROR: return "index error";
    case REEL_DEVICE_ERROR: return "device error";
    case REEL_FILE_ERROR: return "file error";
    case REEL_MISFIT_ERROR: return "misfit error";
    case REEL_MEMORY_ERROR: return "memory error";
    case REEL_INTERNAL_ERROR: return "internal error";
  }
  return "unknown status";
}

reel_status reel_set_thread_count(int32_t count) {
  return guarded(__func__, [&] { reel::set_thread_count(count, {}); });
}
