#include <reel/train.h>

#include "ranks.h"

namespace samples {

int rank() { return 0; }
int ranks() { return 1; }
void wait_for_ranks() {}
int run_on_ranks(const std::function<int()>& body) { return body(); }

struct Replicas::Implementation {};
Replicas::Replicas(reel::nn::Module&, reel::optim::Optimiser&, std::vector<reel::Tensor>) {}
Replicas::~Replicas() = default;
void Replicas::check() const {}

double Replicas::backward(reel::Tape& tape, const reel::Tensor& loss, double,
                          const std::vector<reel::data::Source>& sources) {
  double value = loss.item();
  reel::train::check_loss(value, sources);
  tape.backward(loss);
  return value;
}

}  // namespace samples
