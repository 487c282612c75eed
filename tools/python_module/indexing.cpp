#include <reel/python.h>

#include <array>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

// The indices of one x[…], and the tensors that lists among them became.
class Indices {
 public:
  Indices(PyObject* key, Location where) : where_(where) {
    if (!PyTuple_Check(key)) {
      add(key);
      return;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    if (count > static_cast<Py_ssize_t>(indices_.size()))
      throw IndexError("x[…]: " + std::to_string(count) + " indices, but a tensor has at most 8 axes", where);
    if (count == 0) indices_[count_++] = Index(ellipsis);
    for (Py_ssize_t i = 0; i < count; ++i) add(PyTuple_GET_ITEM(key, i));
  }

  Indexed of(const Tensor& x) const {
    return x(indices_[0], indices_[1], indices_[2], indices_[3], indices_[4], indices_[5], indices_[6], indices_[7],
             indices_[8], indices_[9], where_);
  }

 private:
  Place place(PyObject* key) const { return {key, "x[…]", "an index", where_}; }

  std::optional<std::int64_t> end_of(PyObject* end) const {
    std::optional<std::int64_t> result;
    if (end != Py_None) read_value(place(end), result);
    return result;
  }

  Index slice_of(PyObject* key) const {
    auto* range = reinterpret_cast<PySliceObject*>(key);
    return Index(Slice{end_of(range->start), end_of(range->stop), end_of(range->step).value_or(1)});
  }

  void add(PyObject* key) { indices_[count_++] = read(key); }

  Index read(PyObject* key) {
    if (const Tensor* tensor = as_tensor(key)) return Index(*tensor);
    if (key == Py_None) return Index(newaxis);
    if (key == Py_Ellipsis) return Index(ellipsis);
    if (PySlice_Check(key)) return slice_of(key);
    if (PyList_Check(key)) {
      Tensor& made = lists_[list_count_++];
      std::vector<std::int64_t> numbers;
      read_value(place(key), numbers);
      made = tensor(numbers, where_);
      return Index(made);
    }
    if (PyBool_Check(key) || !PyIndex_Check(key))
      refuse(place(key), "an integer, a slice, None, …, a Tensor or a list of integers");
    std::int64_t number;
    read_value(place(key), number);
    return Index(number);
  }

  Location where_;
  std::array<Index, 10> indices_;
  std::array<Tensor, 10> lists_;
  std::size_t count_ = 0, list_count_ = 0;
};

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) noexcept {
  try {
    const Tensor& x = *nb::inst_ptr<Tensor>(self);
    return to_python(Tensor(Indices(key, caller_location()).of(x)));
  } catch (...) {
    return raise_current();
  }
}

int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
  try {
    Location where = caller_location();
    const Tensor& x = *nb::inst_ptr<Tensor>(self);
    if (!value) throw ArgumentError("del x[…]: the elements of a tensor cannot be removed", where);
    Arg y = read_arg({value, "x[…] = y", "y", where});
    Indices(key, where).of(x) = y;
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

}  // namespace reel::python
