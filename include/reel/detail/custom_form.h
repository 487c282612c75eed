#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/detail/members.h>
#include <reel/tensor.h>

namespace reel {
class Wanted;
}

namespace reel::detail {

class Gradient;
struct CustomOp;

/// One run of a user's forward.
struct CustomForward {
  void* op;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  std::vector<Tensor> saved;   ///< for the gradient; undefined ones are kept as such
  bool saves_outputs = false;  ///< the first that are saved are the outputs
  std::byte* state;            ///< for the gradient: plain data
};

/// One run of a user's gradient.
class CustomGradient {
 public:
  explicit CustomGradient(Gradient& gradient);
  /// The gradient of output k.
  Tensor output(std::size_t k) const;
  Tensor saved(std::size_t k) const;
  const std::byte* state() const;
  Wanted wanted() const;
  bool on_cuda() const;
  /// Throws: TapeError, ShapeError, DTypeError or DeviceError unless there is a gradient that fits for each input.
  void give(std::span<const Tensor> gradients) const;

 private:
  Gradient& gradient_;
};

/// The functions of an op that follow from its type.
struct CustomFunctions {
  void (*forward)(CustomForward& run);
  void (*gradient)(const CustomGradient& run);
  std::size_t state_bytes;
  bool cpu_only = false;
};

/// The op of that name with these functions; made when it is first asked for, and kept for ever.
const CustomOp& custom_op(std::string_view name, const CustomFunctions& functions);
std::string_view name_of(const CustomOp& op);
/// Runs it: `outputs` is filled. Throws: what its forward throws; as `apply`.
void run_custom(const CustomOp& op, void* functions, std::span<const Arg> inputs, std::span<Tensor> outputs);

template <class Result>
inline constexpr std::size_t result_count = 0;
template <>
inline constexpr std::size_t result_count<Tensor> = 1;
template <std::size_t count>
inline constexpr std::size_t result_count<std::array<Tensor, count>> = count;

/// A Tensor or an array of them, from what `at` gives for each number.
template <class Result, class At>
Result gathered(At at) {
  if constexpr (std::is_same_v<Result, Tensor>) {
    return at(0);
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return Result{at(i)...};
    }(std::make_index_sequence<result_count<Result>>());
  }
}

inline std::span<const Tensor> listed(const Tensor& tensor) { return {&tensor, 1}; }
inline std::span<const Tensor> listed(std::span<const Tensor> tensors) { return tensors; }

template <class Result>
void put_results(CustomForward& run, const Result& result) {
  std::span<const Tensor> given = listed(result);
  for (std::size_t k = 0; k < given.size(); ++k) run.outputs[k] = given[k];
}

template <class Given, std::size_t inputs>
constexpr void check_gradient_type() {
  constexpr bool single = std::is_same_v<Given, Tensor>;
  static_assert(single || std::is_convertible_v<const Given&, std::span<const Tensor>>,
                "a gradient function returns a Tensor, a std::array<Tensor, N> or a std::vector<Tensor>");
  static_assert(!single || inputs == 1,
                "a gradient function of several inputs returns a std::array<Tensor, N>, one gradient for each");
  static_assert(single || result_count<Given> == 0 || result_count<Given> == inputs,
                "a gradient function returns as many gradients as there are inputs");
}

template <std::size_t>
using EachTensor = const Tensor&;

/// An op that is given as two functions.
template <class Forward, class Backward, class Inputs>
struct FunctionForm;
template <class Forward, class Backward, std::size_t... i>
struct FunctionForm<Forward, Backward, std::index_sequence<i...>> {
  static_assert(std::is_invocable_v<Forward&, EachTensor<i>...>,
                "the forward function of a custom gradient takes one const Tensor& for each input");
  static_assert(
      std::is_trivially_copyable_v<Backward>,
      "the backward function of a custom gradient captures plain data only, because the tape keeps a copy of it "
      "byte by byte; it cannot capture tensors: pass them as inputs, or save them (see reel::apply)");
  static_assert(alignof(Backward) <= 8);
  using Result = std::invoke_result_t<Forward&, EachTensor<i>...>;
  static_assert(result_count<Result> != 0,
                "the forward function of a custom gradient returns a Tensor or a std::array<Tensor, K>");
  static constexpr bool takes_none = std::is_invocable_v<const Backward&, const Result&>;
  static constexpr bool takes_inputs = std::is_invocable_v<const Backward&, const Result&, EachTensor<i>...>;
  static constexpr bool takes_all =
      std::is_invocable_v<const Backward&, const Result&, const Result&, EachTensor<i>...>;
  static_assert(takes_none || takes_inputs || takes_all,
                "the backward function of a custom gradient takes (dy), (dy, x...) or (dy, y, x...)");

  struct Functions {
    Forward& forward;
    const Backward& backward;
  };

  static void forward(CustomForward& run) {
    Functions& functions = *static_cast<Functions*>(run.op);
    put_results(run, functions.forward(run.inputs[i]...));
    std::memcpy(run.state, static_cast<const void*>(&functions.backward), sizeof(Backward));
    if constexpr (takes_none) return;
    run.saves_outputs = !takes_inputs;
    if constexpr (!takes_inputs) run.saved.assign(run.outputs.begin(), run.outputs.end());
    run.saved.insert(run.saved.end(), run.inputs.begin(), run.inputs.end());
  }

  static void gradient(const CustomGradient& run) {
    const Backward& backward = *reinterpret_cast<const Backward*>(run.state());
    Result dy = gathered<Result>([&](std::size_t k) { return run.output(k); });
    if constexpr (takes_none) {
      give(run, backward(dy));
    } else if constexpr (takes_inputs) {
      give(run, backward(dy, run.saved(i)...));
    } else {
      Result y = gathered<Result>([&](std::size_t k) { return run.saved(k); });
      give(run, backward(dy, y, run.saved(result_count<Result> + i)...));
    }
  }

  template <class Given>
  static void give(const CustomGradient& run, const Given& given) {
    check_gradient_type<Given, sizeof...(i)>();
    run.give(listed(given));
  }

  static constexpr CustomFunctions functions{.forward = forward, .gradient = gradient, .state_bytes = sizeof(Backward)};
};

struct SavesNothing {};
template <class Op>
struct SavedBy {
  using Type = SavesNothing;
};
template <class Op>
  requires requires { typename Op::Saved; }
struct SavedBy<Op> {
  using Type = typename Op::Saved;
};

/// How a struct of saved values is kept: its tensors with those that the tape saves, the rest byte by byte.
template <class Saved, class Members = decltype(members_of(std::declval<Saved&>()))>
struct SavedForm;
template <class Saved, class... Member>
struct SavedForm<Saved, std::tuple<Member&...>> {
  static_assert(((std::is_same_v<Member, Tensor> || (std::is_trivially_copyable_v<Member> && alignof(Member) <= 8)) &&
                 ...),
                "a member of Saved is a Tensor or plain data");
  template <class T>
  static constexpr std::size_t bytes_for = std::is_same_v<T, Tensor> ? 0 : (sizeof(T) + 7) & ~std::size_t{7};
  static constexpr std::size_t bytes = (std::size_t{0} + ... + bytes_for<Member>);

  static void take(Saved& saved, CustomForward& run, std::byte* place) {
    auto take_member = [&]<class T>(T& member) {
      if constexpr (std::is_same_v<T, Tensor>)
        run.saved.push_back(std::move(member));
      else
        std::memcpy(place, &member, sizeof member);
      place += bytes_for<T>;
    };
    std::apply([&](Member&... member) { (take_member(member), ...); }, members_of(saved));
  }

  static Saved rebuilt(const CustomGradient& run, const std::byte* place) {
    std::size_t next = 0;
    auto member = [&]<class T>(std::type_identity<T>) -> T {
      if constexpr (std::is_same_v<T, Tensor>) {
        return run.saved(next++);
      } else {
        const std::byte* from = std::exchange(place, place + bytes_for<T>);
        return *reinterpret_cast<const T*>(from);
      }
    };
    return Saved{member(std::type_identity<Member>())...};
  }
};

/// An op that is given as a struct.
template <class Op, class Inputs>
struct StructForm;
template <class Op, std::size_t... i>
struct StructForm<Op, std::index_sequence<i...>> {
  static_assert(
      std::is_trivially_copyable_v<Op> && alignof(Op) <= 8,
      "the struct of an op holds plain data only, because the tape keeps a copy of it byte by byte; tensors are "
      "inputs, or members of its struct Saved");
  using Saved = typename SavedBy<Op>::Type;
  static constexpr bool saves = !std::is_same_v<Saved, SavesNothing>;
  static constexpr std::size_t op_bytes = (sizeof(Op) + 7) & ~std::size_t{7};

  static auto run_on_cpu(const Op& op, Saved& saved, EachTensor<i>... x) {
    if constexpr (saves)
      return op.forward(saved, x...);
    else
      return op.forward(x...);
  }
  using Result =
      decltype(run_on_cpu(std::declval<const Op&>(), std::declval<Saved&>(), std::declval<EachTensor<i>>()...));
  static_assert(result_count<Result> != 0, "the forward of an op returns a Tensor or a std::array<Tensor, K>");

  static Result run_forward(const Op& op, Saved& saved, std::span<const Tensor> x) {
    if constexpr (requires { op.forward_cuda(saved, x[i]...); }) {
      if (x[0].device().type == Device::Type::cuda) return op.forward_cuda(saved, x[i]...);
    } else if constexpr (requires { op.forward_cuda(x[i]...); }) {
      if (x[0].device().type == Device::Type::cuda) return op.forward_cuda(x[i]...);
    }
    return run_on_cpu(op, saved, x[i]...);
  }

  static void forward(CustomForward& run) {
    const Op& op = *static_cast<const Op*>(run.op);
    Saved saved{};
    put_results(run, run_forward(op, saved, run.inputs));
    std::memcpy(run.state, &op, sizeof op);
    SavedForm<Saved>::take(saved, run, run.state + op_bytes);
  }

  /// Calls f, which takes the saved values where there are any, and may ask what is wanted. `Run` is a CustomGradient,
  /// and a template argument since Wanted is incomplete here.
  template <class Run, class F, class... Values>
  static void call_gradient(const Run& run, F f, const Values&... values) {
    if constexpr (std::is_invocable_v<F, const Values&..., Wanted>)
      give(run, f(values..., run.wanted()));
    else
      give(run, f(values...));
  }
  template <class F>
  static void run_gradient(const CustomGradient& run, F f) {
    Result dy = gathered<Result>([&](std::size_t k) { return run.output(k); });
    if constexpr (saves)
      call_gradient(run, f, SavedForm<Saved>::rebuilt(run, run.state() + op_bytes), dy);
    else
      call_gradient(run, f, dy);
  }

  static void gradient(const CustomGradient& run) {
    const Op& op = *reinterpret_cast<const Op*>(run.state());
    if constexpr (requires { &Op::gradient_cuda; }) {
      if (run.on_cuda())
        return run_gradient(run, [&](const auto&... values) -> decltype(op.gradient_cuda(values...)) {
          return op.gradient_cuda(values...);
        });
    }
    run_gradient(run,
                 [&](const auto&... values) -> decltype(op.gradient(values...)) { return op.gradient(values...); });
  }

  template <class Given>
  static void give(const CustomGradient& run, const Given& given) {
    check_gradient_type<Given, sizeof...(i)>();
    run.give(listed(given));
  }

  static constexpr bool is_cpu_only() {
    if constexpr (requires { Op::cpu_only; })
      return Op::cpu_only;
    else
      return false;
  }
  static constexpr CustomFunctions functions{.forward = forward,
                                             .gradient = gradient,
                                             .state_bytes = op_bytes + SavedForm<Saved>::bytes,
                                             .cpu_only = is_cpu_only()};
};

template <class Form>
auto run_form(const char* name, void* functions, std::span<const Arg> inputs) {
  static const CustomOp& first = custom_op(name, Form::functions);
  using Result = typename Form::Result;
  std::array<Tensor, result_count<Result>> outputs;
  run_custom(name_of(first) == name ? first : custom_op(name, Form::functions), functions, inputs, outputs);
  return gathered<Result>([&](std::size_t k) { return std::move(outputs[k]); });
}

}  // namespace reel::detail
