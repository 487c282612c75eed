#include <reel/python.h>

#include <vector>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

// Reads nested lists of numbers into elements in row-major order, as integers and as doubles.
class ListReader {
 public:
  explicit ListReader(Location where) : where_(where) {}

  void read(PyObject* value, int depth = 0) {
    if (!PyList_Check(value) && !PyTuple_Check(value)) {
      if (depth != shape_.rank()) refuse_ragged();
      add(value);
      return;
    }
    std::vector<nb::object> items = read_items({value, "tensor", "data", where_}, "nested lists of numbers");
    auto count = static_cast<std::int64_t>(items.size());
    if (first_ && depth == shape_.rank()) shape_.push_back(count, where_);
    if (depth >= shape_.rank() || shape_[depth] != count) refuse_ragged();
    for (const nb::object& item : items) read(item.ptr(), depth + 1);
    if (count == 0) first_ = false;
  }

  Tensor made(std::optional<DType> dtype, Device device) const {
    bool fractions = has_fractions_ || integers_.empty();
    DType own = fractions ? DType::f32 : has_integers_ ? DType::i64 : DType::boolean;
    DType wanted = dtype.value_or(own);
    bool exact = !fractions && !is_floating(wanted);
    LiteralOptions options{wanted, device};
    return exact ? tensor(integers_, shape_, options, where_) : tensor(numbers_, shape_, options, where_);
  }

 private:
  [[noreturn]] void refuse_ragged() const {
    throw ShapeError("tensor: the lists of one depth are not equally long", where_);
  }

  void add(PyObject* value) {
    first_ = false;
    Arg number = read_arg({value, "tensor", "data", where_});
    if (number.is_tensor()) {
      if (number.rank() != 0)
        throw ArgumentError("tensor: a Tensor among numbers; stack(tensors) joins tensors", where_);
      numbers_.push_back(number.item());
      has_fractions_ = true;
      integers_.push_back(0);
      return;
    }
    has_fractions_ = has_fractions_ || number.kind() == Arg::Kind::floating;
    has_integers_ = has_integers_ || number.kind() == Arg::Kind::integer;
    numbers_.push_back(number.number());
    integers_.push_back(number.kind() == Arg::Kind::floating ? 0 : number.integer());
  }

  Location where_;
  Shape shape_;
  bool first_ = true;  // no number was read: each list adds an axis
  bool has_fractions_ = false, has_integers_ = false;
  std::vector<std::int64_t> integers_;
  std::vector<double> numbers_;
};

nb::object make_tensor(const nb::object& data, const nb::object& dtype, const nb::object& device) {
  Location where = caller_location();
  std::optional<DType> wanted;
  Device place = default_device();
  if (!dtype.is_none()) read_value(Place{dtype.ptr(), "tensor", "dtype", where}, wanted);
  if (!device.is_none()) read_value(Place{device.ptr(), "tensor", "device", where}, place);
  Tensor made;
  if (const Tensor* tensor = as_tensor(data.ptr())) {
    made = copy(Arg(stop_gradient(Arg(*tensor, where)), where));
  } else if (PyObject_CheckBuffer(data.ptr()) && !(is_number(data.ptr()))) {
    made = copy(Arg(from_buffer(data, where, true), where));
  } else {
    ListReader reader(where);
    reader.read(data.ptr());
    return nb::steal(to_python(reader.made(wanted, place)));
  }
  if (wanted && *wanted != made.dtype()) made = to(Arg(made, where), *wanted);
  if (!(place == made.device())) made = to(Arg(made, where), place);
  return nb::steal(to_python(made));
}

}  // namespace

void add_literals(nb::module_& m) {
  m.def(
      "tensor", make_tensor, nb::arg("data"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(),
      "A tensor with a copy of the data: a number, nested lists of numbers, or any buffer, such as an array of NumPy. "
      "Python's floats become f32 and its integers i64, unless a dtype is given.");
}

}  // namespace reel::python
