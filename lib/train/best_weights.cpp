#include <reel/train/best_weights.h>

#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../dispatch/listener_scope.h"
#include "../ops/if_needed.h"
#include "../optim/state_reader.h"

namespace reel::train {

using detail::fail;

namespace {

constexpr const char *offer_name = "train::BestWeights", *check_name = "train::check_loss";

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

// The items whose rows of a batch's tensors hold NaN or infinity; a tensor (T, N, …) has no rows of items.
std::set<std::int64_t> items_with_anomalies(const data::BatchSources& sources) {
  NoRecord pause;
  detail::Unobserved looking(detail::context());
  std::set<std::int64_t> items;
  for (const Tensor& x : sources.tensors) {
    if (!x.defined() || !is_floating(x.dtype()) || x.rank() == 0 || x.size(0) != std::ssize(sources) || x.numel() == 0)
      continue;
    Tensor found = detail::to_if_needed(nonzero(logical_not(all(isfinite(reshape(x, {x.size(0), -1})), 1))), cpu);
    items.insert(found.data<std::int64_t>(), found.data<std::int64_t>() + found.numel());
  }
  return items;
}

}  // namespace

void check_loss(double loss, Location where) { check_loss(loss, std::span<const data::Source>(), where); }

void check_loss(double loss, std::span<const data::Source> sources, Location where) {
  if (std::isfinite(loss)) return;
  std::string items = data::to_string(sources, sources.size());
  fail<DivergedError>(check_name, where,
                      "the loss is {}{}{}; if the input is finite, a lower learning rate or clipping may help", loss,
                      items.empty() ? "" : " for the items from ", items);
}

void check_loss(double loss, const data::BatchSources& sources, Location where) {
  if (std::isfinite(loss)) return;
  std::set<std::int64_t> rows = items_with_anomalies(sources);
  if (rows.empty()) return check_loss(loss, std::span<const data::Source>(sources), where);
  std::vector<data::Source> found;
  for (std::int64_t row : rows) found.push_back(sources[static_cast<std::size_t>(row)]);
  std::string items = data::to_string(found, found.size());
  fail<DivergedError>(check_name, where, "the loss is {}; the batch itself holds NaN or infinity, in row{} {}{}{}",
                      loss, rows.size() == 1 ? "" : "s", fmt::join(rows, ", "),
                      items.empty() ? "" : ": the items from ", items);
}

bool BestWeights::offer(double score, Location where) {
  CallerScope caller(where);
  NoRecord pause;
  if (std::isnan(score)) fail<DivergedError>(offer_name, where, "the score is {}", score);
  std::vector<NamedTensor> weights = weights_of(module_);
  for (const NamedTensor& named : weights) check_weight(named, where);
  if (!empty() && score <= score_) return false;
  std::vector<Kept> copies;
  for (const NamedTensor& named : weights) copies.push_back({named.name, named.tensor, copy(named.tensor)});
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

std::vector<NamedTensor> BestWeights::state() const {
  std::vector<NamedTensor> state{{"score", tensor(offered_ ? std::vector<double>{score_} : std::vector<double>())}};
  for (const Kept& kept : kept_) state.push_back({"weights." + kept.name, kept.values});
  return state;
}

void BestWeights::load_state(std::span<const NamedTensor> state, Location where) {
  CallerScope caller(where);
  NoRecord pause;
  detail::StateReader reader(offer_name, state, where);
  bool offered = reader.rows("score") > 0;
  auto score = reader.list<double>("score", offered ? 1 : 0);
  if (offered && std::isnan(score[0])) fail<Error>(offer_name, where, "the state's 'score' is NaN");
  std::vector<Kept> found;
  if (offered)
    for (const NamedTensor& named : weights_of(module_)) {
      const Tensor& own = named.tensor;
      const Tensor& values = reader.find("weights." + named.name, own.shape(), own.dtype());
      found.push_back({named.name, own, values.device() == own.device() ? copy(values) : to(values, own.device())});
    }
  reader.finish();
  kept_ = std::move(found);
  score_ = offered ? score[0] : -std::numeric_limits<double>::infinity();
  offered_ = offered;
}

}  // namespace reel::train
