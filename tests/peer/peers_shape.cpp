#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

std::vector<std::int64_t> axes(Given given) { return given.integers("axes"); }
std::int64_t axis(Given given) { return given.integer("axis"); }

// The parts in reverse, as the rows put them together.
at::Tensor reversed(std::vector<at::Tensor> parts, Given given) {
  return at::cat(std::vector<at::Tensor>(parts.rbegin(), parts.rend()), axis(given));
}

// libtorch lists widths from the last axis, and other than constant ones of some last axes alone.
at::Tensor padded(const at::Tensor& x, Given given) {
  std::vector<std::int64_t> widths = given.integers("widths"), listed;
  bool constant = given.integer("mode") == 0;
  for (std::size_t i = widths.size() / 2; i > (constant ? 0 : widths.size() / 2 - 2); --i)
    listed.insert(listed.end(), {widths[2 * i - 2], widths[2 * i - 1]});
  if (constant) return at::constant_pad_nd(x, listed, given.number("value"));
  if (given.integer("mode") == 3) return at::_pad_circular(x, listed);
  return given.integer("mode") == 1 ? at::reflection_pad2d(x, listed) : at::replication_pad2d(x, listed);
}

void add_views(Peers& peers) {
  peers["reshape"] = [](Tensors x, Given given) { return x[0].reshape(given.integers("shape")); };
  peers["view"] = [](Tensors x, Given given) { return x[0].view(given.integers("shape")); };
  peers["flatten"] = [](Tensors x, Given given) { return x[0].flatten(axes(given)[0], axes(given)[1]); };
  peers["permute"] = [](Tensors x, Given given) { return x[0].permute(axes(given)); };
  peers["transpose"] = [](Tensors x, Given given) { return x[0].transpose(axes(given)[0], axes(given)[1]); };
  peers["expand"] = [](Tensors x, Given given) { return x[0].expand(given.integers("shape")); };
  // Ascending axes, so that each one's place is final.
  peers["unsqueeze"] = [](Tensors x, Given given) {
    at::Tensor y = x[0];
    for (std::int64_t place : axes(given)) y = y.unsqueeze(place);
    return y;
  };
  peers["squeeze"] = [](Tensors x, Given given) {
    at::Tensor y = x[0];
    std::vector<std::int64_t> places = axes(given);
    for (std::size_t i = places.size(); i-- > 0;) y = y.squeeze(places[i]);
    return y;
  };
  peers["diagonal"] = [](Tensors x, Given given) {
    return x[0].diagonal(given.integer("diagonal"), given.integer("first"), given.integer("second"));
  };
  peers["diag_embed"] = [](Tensors x, Given given) {
    return at::diag_embed(x[0], given.integer("diagonal"), given.integer("first"), given.integer("second"));
  };
  peers["meshgrid"] = [](Tensors x, Given given) {
    return at::meshgrid(x, given.flag("xy") ? "xy" : "ij")[static_cast<std::size_t>(given.integer("part"))];
  };
  peers["slice"] = [](Tensors x, Given given) {
    std::vector<std::int64_t> range = given.integers("range");
    return x[0].slice(axis(given), range[0], range[1], range[2]);
  };
  peers["select"] = [](Tensors x, Given given) { return x[0].select(axis(given), given.integer("index")); };
  peers["split"] = [](Tensors x, Given given) {
    return reversed(x[0].split_with_sizes(given.integers("sizes"), axis(given)), given);
  };
  peers["chunk"] = [](Tensors x, Given given) {
    return reversed(x[0].chunk(given.integer("count"), axis(given)), given);
  };
}

}  // namespace

void add_shape_peers(Peers& peers) {
  add_views(peers);
  peers["flip"] = [](Tensors x, Given given) { return x[0].flip(axes(given)); };
  peers["concat"] = [](Tensors x, Given given) { return at::cat(x, axis(given)); };
  peers["stack"] = [](Tensors x, Given given) { return at::stack(x, axis(given)); };
  peers["roll"] = [](Tensors x, Given given) { return x[0].roll(given.integers("shifts"), axes(given)); };
  peers["tile"] = [](Tensors x, Given given) { return x[0].tile(given.integers("repetitions")); };
  peers["repeat"] = [](Tensors x, Given given) {
    std::vector<std::int64_t> counts = given.integers("counts");
    if (counts.size() == 1) return x[0].repeat_interleave(counts[0], axis(given));
    return x[0].repeat_interleave(at::tensor(counts), axis(given));
  };
  peers["tril"] = [](Tensors x, Given given) { return x[0].tril(given.integer("diagonal")); };
  peers["triu"] = [](Tensors x, Given given) { return x[0].triu(given.integer("diagonal")); };
  peers["diag"] = [](Tensors x, Given given) { return x[0].diag(given.integer("diagonal")); };
  peers["pad"] = [](Tensors x, Given given) { return padded(x[0], given); };
}

}  // namespace reel_test
