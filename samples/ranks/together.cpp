#include <reel/dist.h>
#include <reel/train.h>

#include <utility>

#include "ranks.h"

namespace samples {

int rank() { return reel::dist::Group().rank(); }
int ranks() { return reel::dist::Group().size(); }
void wait_for_ranks() { reel::dist::Group().barrier(); }
int run_on_ranks(const std::function<int()>& body) { return reel::dist::run(body); }

struct Replicas::Implementation {
  reel::dist::DataParallel parallel;
};

Replicas::Replicas(reel::nn::Module& model, reel::optim::Optimiser& optimiser, std::vector<reel::Tensor> by_rows)
    : implementation_(new Implementation{
          {reel::dist::Group(), model, optimiser, reel::dist::DataParallelOptions{.by_rows = std::move(by_rows)}}}) {}
Replicas::~Replicas() = default;
void Replicas::check() const { implementation_->parallel.check_replicas(); }

double Replicas::backward(reel::Tape& tape, const reel::Tensor& loss, double count,
                          const std::vector<reel::data::Source>& sources) {
  if (!loss.defined()) return implementation_->parallel.join().loss;
  reel::train::check_loss(loss.item(), sources);
  return implementation_->parallel.backward(tape, loss, count).loss;
}

}  // namespace samples
