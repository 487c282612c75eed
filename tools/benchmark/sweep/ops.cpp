#include "shared_ops.h"

namespace reel_bench {

namespace {

using reel::Tensor;
using In = const Call<Tensor>&;

int axis(In c) { return static_cast<int>(c.axis); }

template <Tensor (*f)(const reel::Arg&, const reel::Axes&, reel::ReduceOptions)>
Tensor over(In c) {
  return f(c[0], c.axes, {.keepdims = c.keepdims != 0});
}

Tensor padded(In c, reel::PadMode mode) {
  reel::PadWidth edge{c.padding, c.padding};
  return pad(c[0], {{}, {}, edge, edge}, {.mode = mode});
}
reel::ConvolutionOptions convolution(In c) {
  return {.stride = c.stride, .padding = c.padding, .groups = c.groups == c.unset ? 1 : c.groups};
}
reel::MaxPoolOptions largest(In c) { return {.stride = c.stride, .padding = c.padding}; }
reel::AveragePoolOptions average(In c) { return {.stride = c.stride, .padding = c.padding}; }
Tensor normalised(In c, bool training) { return batch_norm(c[0], c[1], c[2], c[3], c[4], {.training = training}); }
Tensor resized(In c, reel::Interpolation mode) { return interpolate(c[0], {.size = {c.k, c.k}, .mode = mode}); }

// Ops that PyTorch calls otherwise.
const std::vector<OpFamily<Tensor>> own_ops{
    {"unary", {{"i1", "f [*]", [](In c) { return i1(c[0]); }}}},
    {"binary", {{"mod", "fi [*] [*]& 0.3..2", [](In c) { return c[0] % c[1]; }}}},
    {"copy",
     {{"copy", "Fib [*]", [](In c) { return copy(c[0]); }},
      {"contiguous", "Fib [*]", [](In c) { return contiguous(c[0]); }},
      {"to_floating", "Fib [*]", [](In c) { return to(c[0], c[0].dtype() == reel::f32 ? reel::f64 : reel::f32); }},
      {"to_i64", "fb [*]", [](In c) { return to(c[0], reel::i64); }},
      {"to_i32", "fib [*]", [](In c) { return to(c[0], reel::i32); }},
      {"to_bool", "fi [*]", [](In c) { return to(c[0], reel::boolean); }},
      {"to_bf16", "d [*]", [](In c) { return to(c[0], reel::bf16); }}}},
    {"activation",
     {{"gelu_tanh", "F [*]", [](In c) { return gelu(c[0], {reel::GeluApproximation::tanh}); }},
      {"logsigmoid", "F [*]", [](In c) { return logsigmoid(c[0]); }},
      {"softsign", "F [*]", [](In c) { return softsign(c[0]); }}}},
    {"reduce",
     {{"sum", "Fib [*] axes keepdims", over<reel::sum>},
      {"mean", "F [*] axes keepdims", over<reel::mean>},
      {"max", "Fi [*] axes keepdims", over<reel::max>},
      {"min", "Fi [*] axes keepdims", over<reel::min>},
      {"any", "fib [*] axes keepdims", over<reel::any>},
      {"all", "fib [*] axes keepdims", over<reel::all>},
      {"logsumexp", "F [*] axes keepdims", over<reel::logsumexp>},
      {"count_nonzero", "fib [*] axes", [](In c) { return count_nonzero(c[0], c.axes); }},
      {"var", "F [*] axes", [](In c) { return var(c[0], c.axes); }},
      {"std", "F [*] axes", [](In c) { return reel::std(c[0], c.axes); }}}},
    {"norm",
     {{"norm", "F [*] axes p", [](In c) { return norm(c[0], c.axes, {.p = static_cast<double>(c.p)}); }},
      {"normalize", "F [*] axis", [](In c) { return normalize(c[0], {.axis = axis(c)}); }},
      {"cosine_similarity", "F [*] [*] axis", [](In c) { return cosine_similarity(c[0], c[1], {.axis = axis(c)}); }}}},
    {"softmax",
     {{"cross_entropy", "F [nc*] [n*]i below=c reduction by1",
       [](In c) { return cross_entropy(c[0], c[1], {reduction_of(c)}); }},
      {"nll_loss", "F [nc*] [n*]i below=c reduction by1",
       [](In c) { return nll_loss(c[0], c[1], {reduction_of(c)}); }}}},
    {"scan",
     {{"cummax", "Fib [*] axis", [](In c) { return cummax(c[0], axis(c)).values; }},
      {"cummin", "Fib [*] axis", [](In c) { return cummin(c[0], axis(c)).values; }}}},
    {"order",
     {{"sort", "Fib [*] axis ^19", [](In c) { return sort(c[0], axis(c)).values; }},
      {"topk", "Fi [*] axis k<axis ^20", [](In c) { return topk(c[0], c.k, axis(c)).values; }},
      {"kthvalue", "Fi [*] axis k<axis ^20", [](In c) { return kthvalue(c[0], c.k, axis(c)).values; }},
      {"median", "f [*@1] axis ^20", [](In c) { return median(c[0], c.axis); }},
      {"unique", "fi [*] ^18", [](In c) { return unique(c[0]).values; }},
      {"bincount", "i [n] below:50000", [](In c) { return bincount(c[0], {.minimum_length = c.below}); }},
      {"histc", "f [*] k:1000", [](In c) { return histc(c[0], {.bins = c.k, .low = -2, .high = 2}); }}}},
    {"index",
     {{"scatter_amax", "fi [*] [*@l]i [*@l] axis below",
       [](In c) { return scatter_reduce(c[0], axis(c), c[1], c[2], reel::ScatterReduction::amax); }},
      {"index_put", "fib [r*] [l]i [l*] below=r", [](In c) { return index_put(c[0], {c[1]}, c[2]); }},
      {"index_put_add", "Fi [r*] [l]i [l*] below=r",
       [](In c) { return index_put(c[0], {c[1]}, c[2], {.accumulate = true}); }}}},
    {"shape",
     {{"flip", "Fib [*] axis", [](In c) { return copy(flip(c[0], c.axis)); }},
      {"repeat", "Fib [*] axis k:4 ^19", [](In c) { return repeat(c[0], c.k, axis(c)); }},
      {"pad", "Fib [nchw] padding:3", [](In c) { return padded(c, reel::PadMode::constant); }},
      {"pad_reflect", "F [nchw] padding:3", [](In c) { return padded(c, reel::PadMode::reflect); }},
      {"pad_edge", "F [nchw] padding:3", [](In c) { return padded(c, reel::PadMode::edge); }}}},
    {"random",
     {{"rand", "f [*] free", [](In c) { return reel::rand(c[0].shape(), {.dtype = c[0].dtype()}); }},
      {"randn", "f [*] free", [](In c) { return reel::randn(c[0].shape(), {.dtype = c[0].dtype()}); }},
      {"randint", "i [*] free", [](In c) { return reel::randint(0, 100, c[0].shape()); }},
      {"randperm", "i [n] free", [](In c) { return reel::randperm(c[0].numel()); }},
      {"bernoulli", "f [*] 0..1 free", [](In c) { return reel::bernoulli(c[0]); }},
      {"dropout", "F [*] free", [](In c) { return dropout(c[0]); }},
      {"arange", "di [n]", [](In c) { return reel::arange(c[0].numel(), {.dtype = c[0].dtype()}); }}}},
    {"algebra",
     {{"cholesky", "D [bnn]! definite ^8", [](In c) { return cholesky(c[0]); }},
      {"solve", "D [bnn]! [bnm] definite ^9", [](In c) { return solve(c[0], c[1]); }},
      {"triangular_solve", "D [bnn]! [bnm] definite ^9", [](In c) { return triangular_solve(c[0], c[1]); }},
      {"inv", "D [bnn]! definite ^8", [](In c) { return inv(c[0]); }},
      {"det", "D [bnn]! definite ^8", [](In c) { return det(c[0]); }},
      {"eigvalsh", "d [bnn]! definite ^7", [](In c) { return eigvalsh(c[0]); }},
      {"eigh", "d [bnn]! definite free ^7", [](In c) { return eigh(c[0]).vectors; }},
      {"svdvals", "d [mn]! ^13", [](In c) { return svdvals(c[0]); }},
      {"svd", "d [mn]! free ^13", [](In c) { return svd(c[0]).u; }},
      {"qr", "d [mn]! free ^13", [](In c) { return qr(c[0]).r; }},
      {"lu", "d [mn]! ^13", [](In c) { return lu(c[0]).u; }},
      {"lstsq", "d [nn]! [nm] definite ^9", [](In c) { return lstsq(c[0], c[1]).solution; }}}},
    {"loss",
     {{"binary_cross_entropy", "F [*] [*] 0.1..0.9 reduction by1",
       [](In c) { return binary_cross_entropy(c[0], c[1], {reduction_of(c)}); }},
      {"binary_cross_entropy_with_logits", "F [*] [*] 0.1..0.9 reduction by1",
       [](In c) { return binary_cross_entropy_with_logits(c[0], c[1], {reduction_of(c)}); }},
      {"kl_div", "F [*] [*] 0.1..0.9 reduction by1",
       [](In c) { return kl_div(c[0], c[1], {static_cast<reel::DivergenceReduction>(c.reduction)}); }},
      {"poisson_nll_loss", "F [*] [*] 0.1..0.9 reduction by1",
       [](In c) { return poisson_nll_loss(c[0], c[1], {reduction_of(c)}); }},
      {"triplet_margin_loss", "F [nm] [nm] [nm] reduction",
       [](In c) { return triplet_margin_loss(c[0], c[1], c[2], {reduction_of(c)}); }}}},
    {"normalise",
     {{"instance_norm", "F [nchw]", [](In c) { return instance_norm(c[0]); }},
      {"batch_norm", "F [nc*] [c]! [c]! [c]! [c]! 0.3..2 by3", [](In c) { return normalised(c, false); }},
      {"batch_norm_training", "F [hc*] [c]! [c]! [c]! [c]! 0.3..2 by3", [](In c) { return normalised(c, true); }}}},
    {"convolution",
     {{"conv1d", "F [ncw] [ock] [o] stride padding ^21", [](In c) { return conv1d(c[0], c[1], c[2], convolution(c)); }},
      {"conv2d", "F [nchw] [ockk] [o] stride padding ^21",
       [](In c) { return conv2d(c[0], c[1], c[2], convolution(c)); }},
      {"conv2d_depthwise", "F [nchw] [c1kk] [c] stride padding groups=c ^20",
       [](In c) { return conv2d(c[0], c[1], c[2], convolution(c)); }},
      {"conv3d", "F [ncdhw] [ockkk] [o] stride padding ^19",
       [](In c) { return conv3d(c[0], c[1], c[2], convolution(c)); }},
      {"conv_transposed2d", "F [nchw] [cokk] [o] stride padding ^20",
       [](In c) { return conv_transposed2d(c[0], c[1], c[2], {.stride = c.stride, .padding = c.padding}); }}}},
    {"pooling",
     {{"max_pool1d", "F [ncw] kernel stride padding", [](In c) { return max_pool1d(c[0], c.kernel, largest(c)); }},
      {"max_pool2d", "F [nchw] kernel stride padding", [](In c) { return max_pool2d(c[0], c.kernel, largest(c)); }},
      {"max_pool3d", "F [ncdhw] kernel stride padding", [](In c) { return max_pool3d(c[0], c.kernel, largest(c)); }},
      {"avg_pool1d", "F [ncw] kernel stride padding", [](In c) { return avg_pool1d(c[0], c.kernel, average(c)); }},
      {"avg_pool2d", "F [nchw] kernel stride padding", [](In c) { return avg_pool2d(c[0], c.kernel, average(c)); }},
      {"avg_pool3d", "F [ncdhw] kernel stride padding", [](In c) { return avg_pool3d(c[0], c.kernel, average(c)); }},
      {"adaptive_avg_pool2d", "F [nchw] k:16", [](In c) { return adaptive_avg_pool2d(c[0], c.k); }},
      {"adaptive_max_pool2d", "F [nchw] k:16", [](In c) { return adaptive_max_pool2d(c[0], c.k); }}}},
    {"resample",
     {{"unfold", "F [nchw] kernel stride padding ^19",
       [](In c) { return unfold(c[0], c.kernel, {.padding = c.padding, .stride = c.stride}); }},
      {"interpolate_nearest", "F [nchw] k:64 ^18", [](In c) { return resized(c, reel::Interpolation::nearest); }},
      {"interpolate_linear", "F [nchw] k:64 ^18", [](In c) { return resized(c, reel::Interpolation::linear); }},
      {"interpolate_cubic", "F [nchw] k:64 ^18", [](In c) { return resized(c, reel::Interpolation::cubic); }}}},
    {"attention",
     {{"attention_causal", "F [bgqe] [bgqe] [bgqe] ^20",
       [](In c) { return scaled_dot_product_attention(c[0], c[1], c[2], {.causal = true}); }}}},
};

}  // namespace

reel::LossReduction reduction_of(In c) { return static_cast<reel::LossReduction>(c.reduction); }

const std::vector<OpFamily<Tensor>>& op_families() {
  static const std::vector<OpFamily<Tensor>> all = [] {
    std::vector<OpFamily<Tensor>> families = shared_ops<Tensor>();
    for (const OpFamily<Tensor>& own : own_ops) {
      auto found = families.begin();
      while (found != families.end() && std::string_view(found->name) != own.name) ++found;
      if (found == families.end()) found = families.insert(found, {own.name, {}});
      found->ops.insert(found->ops.end(), own.ops.begin(), own.ops.end());
    }
    return families;
  }();
  return all;
}

}  // namespace reel_bench
