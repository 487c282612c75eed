#include "instruction_set.h"

#include "../cpu_kernels.h"
#include "elementwise/optimise.h"

namespace reel::detail {
namespace {

void fill(KernelTable& table, OptimiserKernels& optimisers) {
  REEL_TARGET::fill_anomaly(table);
  REEL_TARGET::fill_argmax(table);
  REEL_TARGET::fill_convolution(table);
  REEL_TARGET::fill_attention(table);
  REEL_TARGET::fill_copy(table);
  REEL_TARGET::fill_element_summary(table);
  REEL_TARGET::fill_elementwise(table);
  REEL_TARGET::fill_loss(table);
  REEL_TARGET::fill_median(table);
  REEL_TARGET::fill_statistics(table);
  REEL_TARGET::fill_matmul(table);
  REEL_TARGET::fill_normalise(table);
  REEL_TARGET::fill_optimise(optimisers);
  REEL_TARGET::fill_pooling(table);
  REEL_TARGET::fill_random(table);
  REEL_TARGET::fill_recurrent(table);
  REEL_TARGET::fill_reduce(table);
  REEL_TARGET::fill_scan(table);
  REEL_TARGET::fill_softmax(table);
  REEL_TARGET::fill_sort(table);
  REEL_TARGET::fill_sparse(table);
  REEL_TARGET::fill_ternary(table);
}

}  // namespace

template <>
FillKernels kernels_of<InstructionSet::REEL_TARGET>() {
  return fill;
}

}  // namespace reel::detail
