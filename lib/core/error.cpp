#include <reel/error.h>

#include "op_error.h"

namespace reel {
namespace {

std::string with_place(const std::string& sentence, Location where) {
  return where.file ? sentence + "; at " + to_string(where) : sentence;
}

}  // namespace

std::string to_string(Location where) {
  if (!where.file) return "unknown place";
  const char* file = where.file;
  while (file[0] == '.' && file[1] == '.' && file[2] == '/') file += 3;
  return fmt::format("{}:{}", file, where.line);
}

Error::Error(const std::string& sentence, Location where)
    : std::runtime_error(with_place(sentence, where)), where_(where) {}

Error::Error(const std::string& sentence, Location where, const std::string& lines)
    : std::runtime_error(with_place(sentence, where) + lines), where_(where) {}

std::string to_string(Device device) {
  return device.type == Device::Type::cpu ? "cpu" : fmt::format("cuda:{}", static_cast<int>(device.index));
}

namespace detail {

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.shape()), name_of(tensor.dtype()));
}

const Tensor& tensor_of(const char* op, const Arg& arg) {
  if (!arg.is_tensor())
    fail<DTypeError>(op, arg.location(), "takes a tensor here, not the number {}; make one with full({{}}, number)",
                     arg.number());
  if (!arg.tensor()->defined())
    fail<Error>(op, arg.location(), "an operand is an undefined tensor: it was never given a value");
  return *arg.tensor();
}

void check_same_device(const char* op, const Tensor& a, const Tensor& b, Location where) {
  if (a.device() != b.device())
    fail<DeviceError>(op, where, "operands are on different devices: {} on {}, {} on {}; copy one of them over",
                      describe(a), to_string(a.device()), describe(b), to_string(b.device()));
}

void check_floating(const char* op, const Tensor& x, Location where) {
  if (!is_floating(x.dtype()))
    fail<DTypeError>(op, where, "takes a floating tensor, not {}; convert it with to(x, f32)", describe(x));
}

int check_axis(const char* op, std::int64_t axis, const Tensor& x, Location where) {
  int rank = x.rank();
  if (axis < -rank || axis >= rank)
    fail<ShapeError>(op, where, "axis {} does not exist in {}; it must lie in [{}, {})", axis, describe(x), -rank,
                     rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

unsigned check_axes(const char* op, const Shape& axes, const Tensor& x, Location where) {
  unsigned set = 0;
  for (std::int64_t axis : axes) {
    unsigned bit = 1u << check_axis(op, axis, x, where);
    if (set & bit)
      fail<ShapeError>(op, where, "axis {} is named twice in {}, for {}", axis, to_string(axes), describe(x));
    set |= bit;
  }
  return set;
}

}  // namespace detail
}  // namespace reel
