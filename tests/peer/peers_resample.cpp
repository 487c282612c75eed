#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

at::Tensor interpolate(Tensors x, Given with) {
  std::vector<std::int64_t> sizes = with.integers("sizes");
  bool align = with.flag("align_corners");
  // A scale that gave the sizes also gives the coordinates.
  c10::optional<double> scale;
  if (with.number("scale") != 0) scale = with.number("scale");
  std::size_t axes = sizes.size();
  switch (static_cast<reel::Interpolation>(with.integer("mode"))) {
    case reel::Interpolation::nearest:
      if (axes == 1) return at::upsample_nearest1d(x[0], sizes, scale);
      if (axes == 2) return at::upsample_nearest2d(x[0], sizes, scale, scale);
      return at::upsample_nearest3d(x[0], sizes, scale, scale, scale);
    case reel::Interpolation::linear:
      if (axes == 1) return at::upsample_linear1d(x[0], sizes, align, scale);
      if (axes == 2) return at::upsample_bilinear2d(x[0], sizes, align, scale, scale);
      return at::upsample_trilinear3d(x[0], sizes, align, scale, scale, scale);
    case reel::Interpolation::cubic: return at::upsample_bicubic2d(x[0], sizes, align, scale, scale);
    case reel::Interpolation::area: break;
  }
  if (axes == 1) return at::adaptive_avg_pool1d(x[0], sizes);
  if (axes == 2) return at::adaptive_avg_pool2d(x[0], sizes);
  return at::adaptive_avg_pool3d(x[0], sizes);
}

}  // namespace

void add_resample_peers(Peers& peers) {
  peers["interpolate"] = interpolate;
  peers["pixel_shuffle"] = [](Tensors x, Given with) { return at::pixel_shuffle(x[0], with.integer("factor")); };
  peers["pixel_unshuffle"] = [](Tensors x, Given with) { return at::pixel_unshuffle(x[0], with.integer("factor")); };
  peers["grid_sample"] = [](Tensors x, Given with) {
    return at::grid_sampler(x[0], x[1], with.integer("mode"), with.integer("padding"), with.flag("align_corners"));
  };
  peers["affine_grid"] = [](Tensors x, Given with) {
    std::vector<std::int64_t> size{x[0].size(0), 1};
    for (std::int64_t each : with.integers("size")) size.push_back(each);
    return at::affine_grid_generator(x[0], size, with.flag("align_corners"));
  };
  peers["unfold"] = [](Tensors x, Given with) {
    return at::im2col(x[0], with.integers("kernel"), with.integers("dilation"), with.integers("padding"),
                      with.integers("stride"));
  };
  peers["fold"] = [](Tensors x, Given with) {
    return at::col2im(x[0], with.integers("size"), with.integers("kernel"), with.integers("dilation"),
                      with.integers("padding"), with.integers("stride"));
  };
}

}  // namespace reel_test
