#include <reel/train/best_weights.h>

#include <cmath>
#include <utility>

#include <reel/ops/comparison.h>
#include <reel/ops/in_place.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"

namespace reel::train {

using detail::fail;

namespace {

constexpr const char* offer_name = "train::BestWeights";

std::vector<NamedTensor> weights_of(const nn::Module& module) {
  std::vector<NamedTensor> all = module.named_parameters();
  for (NamedTensor& buffer : module.named_buffers()) all.push_back(std::move(buffer));
  return all;
}

void check_weight(const NamedTensor& named, Location where) {
  if (!is_floating(named.tensor.dtype()) || all(isfinite(named.tensor)).item<bool>()) return;
  fail<DivergedError>(offer_name, where,
                      "the weights '{}' are no longer finite; a lower learning rate or clipping may help", named.name);
}

}  // namespace

void check_loss(double loss, Location where) {
  if (std::isfinite(loss)) return;
  fail<DivergedError>("train::check_loss", where, "the loss is {}; a lower learning rate or clipping may help", loss);
}

bool BestWeights::offer(double score, Location where) {
  CallerScope caller(where);
  NoRecord pause;
  if (std::isnan(score)) fail<DivergedError>(offer_name, where, "the score is {}", score);
  std::vector<NamedTensor> weights = weights_of(module_);
  for (const NamedTensor& named : weights) check_weight(named, where);
  if (!empty() && score <= score_) return false;
  std::vector<Kept> copies;
  for (const NamedTensor& named : weights) copies.push_back({named.tensor, copy(named.tensor)});
  kept_ = std::move(copies);
  score_ = score;
  offered_ = true;
  return true;
}

void BestWeights::restore(Location where) const {
  CallerScope caller(where);
  NoRecord pause;
  for (const Kept& kept : kept_) copy_(Destination(kept.own, where), kept.values);
}

}  // namespace reel::train
