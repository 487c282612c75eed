#include <reel/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <typeinfo>
#include <vector>

#include "extended_error.h"
#include "memory_error.h"
#include "op.h"
#include "op_error.h"
#include "printable.h"

namespace reel {
namespace {

// An error that contains its own sentence passes an empty one, for which no memory is allocated.
std::string with_place(const std::string& sentence, Location where) {
  return where.file && !sentence.empty() ? sentence + "; at " + to_string(where) : sentence;
}

// The file name for messages, without leading "../".
const char* shown_file(Location where) {
  const char* file = where.file;
  while (file[0] == '.' && file[1] == '.' && file[2] == '/') file += 3;
  return file;
}

// A MemoryError that contains its text, because allocating a string might fail when memory is exhausted.
class SelfContainedMemoryError final : public MemoryError {
 public:
  explicit SelfContainedMemoryError(Location where) : MemoryError(std::string(), where) {}
  const char* what() const noexcept override { return text_; }

  SelfContainedMemoryError& operator<<(std::string_view more) {
    std::size_t count = std::min(more.size(), sizeof text_ - 1 - length_);
    std::memcpy(text_ + length_, more.data(), count);
    text_[length_ += count] = '\0';
    return *this;
  }
  SelfContainedMemoryError& operator<<(std::int64_t number) {
    char digits[24];
    return *this << std::string_view(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  // Formats a shape as to_string does: (2, 3).
  SelfContainedMemoryError& operator<<(const Shape& shape) {
    *this << "(";
    for (int i = 0; i < shape.rank(); ++i) *this << (i > 0 ? ", " : "") << shape[i];
    return *this << (shape.rank() == 1 ? ",)" : ")");
  }
  SelfContainedMemoryError& operator<<(Location where) {
    return where.file ? *this << "; at " << std::string_view(shown_file(where)) << ":" << std::int64_t{where.line}
                      : *this;
  }

 private:
  char text_[768] = "";
  std::size_t length_ = 0;
};

// The function to name: the composed one that runs, or the op itself.
const char* named_op(const char* op) {
  const detail::Context* context = detail::current_context;
  return context && context->function ? context->function : op;
}

// The call site to report. A thread for which no memory could be allocated has no context.
Location call_site_of(Location where) {
  const detail::Context* context = detail::current_context;
  return context ? context->call_site(where) : where;
}

}  // namespace

void detail::fail_for_memory(const char* op, Location where) {
  where = call_site_of(where);
  throw SelfContainedMemoryError(where) << std::string_view(named_op(op)) << ": there is no memory for its work"
                                        << where;
}

void detail::fail_for_memory(const char* op, Location where, const Shape& shape, DType dtype) {
  where = call_site_of(where);
  double megabytes = static_cast<double>(shape.numel()) * static_cast<double>(size_of(dtype)) / 1e6;
  std::int64_t tenths = std::llround(megabytes * 10);
  SelfContainedMemoryError error(where);
  error << std::string_view(named_op(op)) << ": there is no memory for ";
  if (tenths > 0) error << "the " << tenths / 10 << "." << tenths % 10 << " MB of ";
  throw error << "a tensor " << shape << " " << name_of(dtype) << where;
}

void detail::throw_extended(const MemoryError& error, std::string_view more, Location where) {
  if (typeid(error) != typeid(SelfContainedMemoryError)) return;
  auto copy = static_cast<const SelfContainedMemoryError&>(error);
  throw copy << more << std::string_view(where.file ? shown_file(where) : "unknown place") << ":"
             << std::int64_t{where.line};
}

constinit std::atomic<void (*)(const Error& error, const std::string& text)> detail::throw_with_text{};

std::string to_string(Location where) {
  return where.file ? fmt::format("{}:{}", shown_file(where), where.line) : "unknown place";
}

Error::Error(const std::string& sentence, Location where)
    : std::runtime_error(with_place(sentence, where)), where_(where) {}

Error::Error(const std::string& sentence, Location where, const std::string& lines)
    : std::runtime_error(with_place(sentence, where) + lines), where_(where) {}

std::string to_string(Device device) {
  return device.type == Device::Type::cpu ? "cpu" : fmt::format("cuda:{}", static_cast<int>(device.index));
}

namespace detail {

std::string notes_text(const ActiveNote* innermost) {
  std::string text;
  std::vector<const ActiveNote*> frames;
  for (const ActiveNote* frame = innermost; frame; frame = frame->outer) frames.push_back(frame);
  for (std::size_t i = frames.size(); i-- > 0;) {
    std::string value;
    frames[i]->append_value(*frames[i], value);
    // A value is empty for the lines of examples that were read from no file, say.
    if (!value.empty()) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", frames[i]->key, value);
  }
  return text;
}

std::string whereabouts(const Context& context) {
  std::string text, notes = notes_text(context.notes);
  if (context.module_call)
    if (std::string path = context.module_call->module_path(); !path.empty()) text = "in " + path;
  if (!notes.empty()) text.append(text.empty() ? "" : " ").append("with ").append(notes);
  return text;
}

Location call_site(Location where) { return context().call_site(where); }

std::string refusal(const char* op, Location where, std::string_view sentence) {
  op = named_op(op);
  // In a backward pass the caller knows the op that is differentiated, not those of its gradient.
  const OpInfo* differentiated = context().differentiating;
  bool is_inner = differentiated && std::string_view(op) != differentiated->name;
  std::string text = is_inner ? fmt::format("gradient of {}: {}: {}", differentiated->name, op, sentence)
                              : fmt::format("{}: {}", op, sentence);
  if (std::string found = whereabouts(context()); !found.empty()) text.append("; ").append(found);
  text = printable_lines(text);  // it may quote names from files
  // Leaves out what the library tries out, or a listener does.
  if (Listener* listener = context().listener; listener && context().has(Context::intercepted))
    listener->refused(op, where, text);
  return text;
}

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
