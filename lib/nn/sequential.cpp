#include <reel/nn/sequential.h>

#include <reel/nn/module_list.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"
#include "cloning.h"
#include "type_name.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* sequential_name = "Sequential";

}  // namespace

Sequential::Sequential(const Sequential& other) : Module(other) {
  for (const auto& part : other.parts_) parts_.push_back(part->copy());
}

Tensor Sequential::operator()(const Arg& x) const {
  return call(sequential_name, x, [&](const Tensor& x) { return run(0, size(), x); });
}

Tensor Sequential::run(std::size_t begin, std::size_t end, const Tensor& x) const {
  Tensor y = x;
  for (std::size_t i = begin; i < end; ++i) y = parts_[i]->run(y);
  return y.is(x) ? copy(x) : y;
}

Tensor SequentialSlice::operator()(const Arg& x) const {
  const Tensor& input = tensor_of(sequential_name, x);
  CallerScope caller(x.location());
  return whole_.run(begin_, end_, input);
}

std::size_t Sequential::index_of(std::int64_t i, Location where) const {
  auto count = static_cast<std::int64_t>(size());
  if (i < -count || i >= count) fail<IndexError>(sequential_name, where, "there is no part {} of {}", i, count);
  return static_cast<std::size_t>(i < 0 ? i + count : i);
}

SequentialSlice Sequential::operator[](PartIndex i) const {
  std::size_t begin = index_of(i.value, i.where);
  return {*this, begin, begin + 1};
}

SequentialSlice Sequential::slice(std::int64_t begin, std::int64_t end, Location where) const {
  auto count = static_cast<std::int64_t>(size());
  std::int64_t first = begin < 0 ? begin + count : begin, last = end < 0 ? end + count : end;
  if (first < 0 || last > count || first > last)
    fail<IndexError>(sequential_name, where, "parts {} to {} are not a range of its {} parts", begin, end, count);
  return {*this, static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

void* Sequential::find(std::int64_t i, const std::type_info& type, Location where) const {
  Part& part = *parts_[index_of(i, where)];
  if (part.type() != type)
    fail<Error>(sequential_name, where, "part {} is a {}, not a {}", i, plain_type_name(part.type()),
                plain_type_name(type));
  return part.address();
}

std::unique_ptr<Sequential::Part> Sequential::refuse_copy() {
  if (Cloning* cloning = Cloning::current(); cloning->replaced) {
    cloning->is_complete = false;
    return nullptr;
  }
  fail<Error>("clone", {}, "a function in a Sequential captures something that cannot be copied");
}

}  // namespace reel::nn

void reel::detail::check_free(const nn::Module& module, Location where) {
  if (module.has_place())
    fail<Error>("Module", where, "the {} is part of a module already; give a clone of it, or one that is made here",
                module.type_name());
}

void reel::detail::refuse_key(std::string_view key, const std::vector<std::string>& keys, Location where) {
  std::string known;
  for (const std::string& other : keys) known += (known.empty() ? "" : ", ") + other;
  fail<Error>("ModuleDict", where, "there is no '{}'; it has {}", key, known.empty() ? "nothing yet" : known);
}
