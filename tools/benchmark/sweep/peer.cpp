#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <map>
#include <memory>
#include <stdexcept>

#include "../peer/report.h"
#include "../peer/version.h"
#include "shared_ops.h"

namespace reel_bench {

std::int64_t reduction_of(const Call<at::Tensor>& call) {
  constexpr at::Reduction::Reduction reductions[] = {at::Reduction::None, at::Reduction::Sum, at::Reduction::Mean};
  return reductions[call.reduction];
}

namespace {

using at::Tensor;
using In = const Call<Tensor>&;
using Function = Tensor (*)(In c);

at::IntArrayRef axes(In c) { return {c.axes.data(), static_cast<std::size_t>(c.axes.rank())}; }
at::IntArrayRef shape(In c) { return c[0].sizes(); }
std::int64_t groups(In c) { return c.groups == c.unset ? 1 : c.groups; }
std::array<std::int64_t, 2> square(In c) { return {c.k, c.k}; }
std::array<std::int64_t, 4> edges(In c) { return {c.padding, c.padding, c.padding, c.padding}; }
Tensor index_put(In c, bool accumulate) {
  return at::index_put(c[0], c10::List<std::optional<Tensor>>({c[1]}), c[2], accumulate);
}

// By the names in ops.cpp, whose calls are other ones in reel.
const std::map<std::string, Function> own_ops{
    {"i1", [](In c) { return at::special_i1(c[0]); }},
    {"mod", [](In c) { return at::remainder(c[0], c[1]); }},
    {"copy", [](In c) { return c[0].clone(at::MemoryFormat::Contiguous); }},
    {"contiguous", [](In c) { return c[0].contiguous(); }},
    {"to_floating", [](In c) { return c[0].to(c[0].scalar_type() == at::kFloat ? at::kDouble : at::kFloat); }},
    {"to_i64", [](In c) { return c[0].to(at::kLong); }},
    {"to_i32", [](In c) { return c[0].to(at::kInt); }},
    {"to_bool", [](In c) { return c[0].to(at::kBool); }},
    {"to_bf16", [](In c) { return c[0].to(at::kBFloat16); }},
    {"gelu_tanh", [](In c) { return at::gelu(c[0], "tanh"); }},
    {"logsigmoid", [](In c) { return at::log_sigmoid(c[0]); }},
    // torch.nn.functional composes it, too, and normalize.
    {"softsign", [](In c) { return c[0] / (at::abs(c[0]) + 1); }},
    {"sum", [](In c) { return at::sum(c[0], axes(c), c.keepdims != 0); }},
    {"mean", [](In c) { return at::mean(c[0], axes(c), c.keepdims != 0); }},
    {"max", [](In c) { return at::amax(c[0], axes(c), c.keepdims != 0); }},
    {"min", [](In c) { return at::amin(c[0], axes(c), c.keepdims != 0); }},
    {"any", [](In c) { return at::any(c[0], axes(c), c.keepdims != 0); }},
    {"all", [](In c) { return at::all(c[0], axes(c), c.keepdims != 0); }},
    {"logsumexp", [](In c) { return at::logsumexp(c[0], axes(c), c.keepdims != 0); }},
    {"count_nonzero", [](In c) { return at::count_nonzero(c[0], axes(c)); }},
    {"var", [](In c) { return at::var(c[0], axes(c), at::Scalar(0)); }},
    {"std", [](In c) { return at::std(c[0], axes(c), at::Scalar(0)); }},
    {"norm", [](In c) { return at::linalg_vector_norm(c[0], c.p, axes(c)); }},
    {"normalize", [](In c) { return c[0] / at::linalg_vector_norm(c[0], 2, c.axis, true).clamp_min(1e-12); }},
    {"cosine_similarity", [](In c) { return at::cosine_similarity(c[0], c[1], c.axis); }},
    {"cross_entropy", [](In c) { return at::cross_entropy_loss(c[0], c[1], {}, reduction_of(c)); }},
    {"nll_loss", [](In c) { return at::nll_loss_nd(c[0], c[1], {}, reduction_of(c)); }},
    {"cummax", [](In c) { return std::get<0>(at::cummax(c[0], c.axis)); }},
    {"cummin", [](In c) { return std::get<0>(at::cummin(c[0], c.axis)); }},
    {"sort", [](In c) { return std::get<0>(at::sort(c[0], c.axis)); }},
    {"topk", [](In c) { return std::get<0>(at::topk(c[0], c.k, c.axis)); }},
    {"kthvalue", [](In c) { return std::get<0>(at::kthvalue(c[0], c.k, c.axis)); }},
    {"median", [](In c) { return std::get<0>(at::median(c[0], c.axis)); }},
    {"unique", [](In c) { return std::get<0>(at::_unique2(c[0], true, true, true)); }},
    {"bincount", [](In c) { return at::bincount(c[0], {}, c.below); }},
    {"histc", [](In c) { return at::histc(c[0], c.k, -2, 2); }},
    {"scatter_amax", [](In c) { return at::scatter_reduce(c[0], c.axis, c[1], c[2], "amax"); }},
    {"index_put", [](In c) { return index_put(c, false); }},
    {"index_put_add", [](In c) { return index_put(c, true); }},
    {"flip", [](In c) { return at::flip(c[0], c.axis); }},
    {"repeat", [](In c) { return at::repeat_interleave(c[0], c.k, c.axis); }},
    {"pad", [](In c) { return at::constant_pad_nd(c[0], edges(c)); }},
    {"pad_reflect", [](In c) { return at::reflection_pad2d(c[0], edges(c)); }},
    {"pad_edge", [](In c) { return at::replication_pad2d(c[0], edges(c)); }},
    {"rand", [](In c) { return at::rand(shape(c), c[0].scalar_type()); }},
    {"randn", [](In c) { return at::randn(shape(c), c[0].scalar_type()); }},
    {"randint", [](In c) { return at::randint(100, shape(c)); }},
    {"randperm", [](In c) { return at::randperm(c[0].numel()); }},
    {"bernoulli", [](In c) { return at::bernoulli(c[0]); }},
    {"dropout", [](In c) { return at::dropout(c[0], 0.5, true); }},
    {"arange", [](In c) { return at::arange(c[0].numel(), c[0].scalar_type()); }},
    {"cholesky", [](In c) { return at::linalg_cholesky(c[0]); }},
    {"solve", [](In c) { return at::linalg_solve(c[0], c[1]); }},
    {"triangular_solve", [](In c) { return at::linalg_solve_triangular(c[0], c[1], false); }},
    {"inv", [](In c) { return at::linalg_inv(c[0]); }},
    {"det", [](In c) { return at::linalg_det(c[0]); }},
    {"eigvalsh", [](In c) { return at::linalg_eigvalsh(c[0]); }},
    {"eigh", [](In c) { return std::get<1>(at::linalg_eigh(c[0])); }},
    {"svdvals", [](In c) { return at::linalg_svdvals(c[0]); }},
    {"svd", [](In c) { return std::get<0>(at::linalg_svd(c[0], false)); }},
    {"qr", [](In c) { return std::get<1>(at::linalg_qr(c[0])); }},
    {"lu", [](In c) { return std::get<2>(at::linalg_lu(c[0])); }},
    {"lstsq", [](In c) { return std::get<0>(at::linalg_lstsq(c[0], c[1])); }},
    {"binary_cross_entropy", [](In c) { return at::binary_cross_entropy(c[0], c[1], {}, reduction_of(c)); }},
    {"kl_div", [](In c) { return at::kl_div(c[0], c[1], reduction_of(c)); }},
    {"poisson_nll_loss", [](In c) { return at::poisson_nll_loss(c[0], c[1], true, false, 1e-8, reduction_of(c)); }},
    {"instance_norm", [](In c) { return at::instance_norm(c[0], {}, {}, {}, {}, true, 0.1, 1e-5, false); }},
    {"batch_norm", [](In c) { return at::batch_norm(c[0], c[1], c[2], c[3], c[4], false, 0.1, 1e-5, false); }},
    {"batch_norm_training", [](In c) { return at::batch_norm(c[0], c[1], c[2], c[3], c[4], true, 0.1, 1e-5, false); }},
    {"conv1d", [](In c) { return at::conv1d(c[0], c[1], c[2], c.stride, c.padding, 1, groups(c)); }},
    {"conv2d", [](In c) { return at::conv2d(c[0], c[1], c[2], c.stride, c.padding, 1, groups(c)); }},
    {"conv2d_depthwise", [](In c) { return at::conv2d(c[0], c[1], c[2], c.stride, c.padding, 1, groups(c)); }},
    {"conv3d", [](In c) { return at::conv3d(c[0], c[1], c[2], c.stride, c.padding, 1, groups(c)); }},
    {"conv_transposed2d", [](In c) { return at::conv_transpose2d(c[0], c[1], c[2], c.stride, c.padding); }},
    {"max_pool1d", [](In c) { return at::max_pool1d(c[0], c.kernel, c.stride, c.padding); }},
    {"max_pool2d", [](In c) { return at::max_pool2d(c[0], c.kernel, c.stride, c.padding); }},
    {"max_pool3d", [](In c) { return at::max_pool3d(c[0], c.kernel, c.stride, c.padding); }},
    {"avg_pool1d", [](In c) { return at::avg_pool1d(c[0], c.kernel, c.stride, c.padding); }},
    {"avg_pool2d", [](In c) { return at::avg_pool2d(c[0], c.kernel, c.stride, c.padding); }},
    {"avg_pool3d", [](In c) { return at::avg_pool3d(c[0], c.kernel, c.stride, c.padding); }},
    {"adaptive_avg_pool2d", [](In c) { return at::adaptive_avg_pool2d(c[0], square(c)); }},
    {"adaptive_max_pool2d", [](In c) { return std::get<0>(at::adaptive_max_pool2d(c[0], square(c))); }},
    {"interpolate_nearest", [](In c) { return at::upsample_nearest2d(c[0], square(c)); }},
    {"interpolate_linear", [](In c) { return at::upsample_bilinear2d(c[0], square(c), false); }},
    {"interpolate_cubic", [](In c) { return at::upsample_bicubic2d(c[0], square(c), false); }},
    {"attention_causal", [](In c) { return at::scaled_dot_product_attention(c[0], c[1], c[2], {}, 0, true); }},
    {"binary_cross_entropy_with_logits",
     [](In c) { return at::binary_cross_entropy_with_logits(c[0], c[1], {}, {}, reduction_of(c)); }},
    {"triplet_margin_loss",
     [](In c) { return at::triplet_margin_loss(c[0], c[1], c[2], 1, 2, 1e-6, false, reduction_of(c)); }},
    {"unfold",
     [](In c) {
       std::array<std::int64_t, 2> kernel{c.kernel, c.kernel}, padding{c.padding, c.padding},
           stride{c.stride, c.stride};
       return at::im2col(c[0], kernel, {1, 1}, padding, stride);
     }},
};

Function function_of(const std::string& op) {
  if (auto found = own_ops.find(op); found != own_ops.end()) return found->second;
  for (const OpFamily<Tensor>& family : shared_ops<Tensor>())
    for (const Op<Tensor>& shared : family.ops)
      if (op == shared.name) return shared.run;
  throw std::invalid_argument("the peer has no op " + op);
}

at::ScalarType type_of(reel::DType dtype) {
  constexpr at::ScalarType types[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt,
                                      at::kLong,  at::kByte,   at::kBool,     at::kChar, at::kShort};
  return types[static_cast<int>(dtype)];
}

// A view of reel's elements, which must live as long.
Tensor view_of(const reel::Tensor& x) {
  reel::Shape shape = x.shape(), strides = x.strides();
  auto list = [](const reel::Shape& numbers) {
    return at::IntArrayRef(numbers.data(), static_cast<std::size_t>(numbers.rank()));
  };
  return at::from_blob(x.body().data, list(shape), list(strides), at::TensorOptions(type_of(x.dtype())));
}

// A copy, whose elements are found by their bytes.
reel::Tensor copy_of(const Tensor& y) {
  Tensor own = y.detach().contiguous();
  reel::DType dtype = reel::f32;
  for (int i = 0; i < reel::dtype_count; ++i)
    if (type_of(static_cast<reel::DType>(i)) == own.scalar_type()) dtype = static_cast<reel::DType>(i);
  reel::Tensor copied = reel::zeros(reel::Shape(std::span(own.sizes().data(), own.sizes().size())), {.dtype = dtype});
  std::memcpy(copied.body().data, own.data_ptr(), own.nbytes());
  return copied;
}

}  // namespace

std::optional<Runnable> peer_call(const Case& one, const std::vector<reel::Tensor>& operands,
                                  const std::vector<std::size_t>& sources, const reel::Tensor& seed) {
  Function function = function_of(one.op);
  bool gradient = one.gradient;
  auto call = std::make_shared<Call<Tensor>>();
  static_cast<Attributes&>(*call) = one.attributes;
  std::vector<Tensor> by;
  c10::InferenceMode forward(!gradient);
  for (const reel::Tensor& x : operands) call->x.push_back(view_of(x));
  if (gradient)
    for (std::size_t i : sources) by.push_back(call->x[i].requires_grad_(true));
  Tensor d = view_of(seed);
  auto run = [=] {
    c10::InferenceMode forward(!gradient);
    Tensor y = function(*call);
    return gradient ? std::pair(y, torch::autograd::grad({y}, by, {d})) : std::pair(y, std::vector<Tensor>());
  };
  try {
    run();
  } catch (const c10::Error&) {
    return {};
  }
  return Runnable{[=] { run(); },
                  [=] {
                    auto [y, gradients] = run();
                    std::vector results{copy_of(y)};
                    for (const Tensor& x : gradients) results.push_back(copy_of(x));
                    return results;
                  }};
}

std::string peer_name() {
  return "PyTorch " + torch_version() + " (" + at::get_cpu_capability() + ", " + processor_name() + ")";
}

void limit_peer(const std::string& instruction_set) {
  ignore_torch_warnings();
  bool avx2 = instruction_set == "avx2";
  if (!avx2 && instruction_set != "baseline") return;
  setenv("ATEN_CPU_CAPABILITY", avx2 ? "avx2" : "default", 1);
  setenv("ONEDNN_MAX_CPU_ISA", avx2 ? "AVX2" : "SSE41", 1);
  setenv("MKL_ENABLE_INSTRUCTIONS", avx2 ? "AVX2" : "SSE4_2", 1);
}

}  // namespace reel_bench
