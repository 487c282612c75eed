#pragma once

/// \namespace reel::nn
/// Modules: layers with parameters, and containers of them.

#include <reel/nn/activation.h>
#include <reel/nn/attention.h>
#include <reel/nn/batch_norm.h>
#include <reel/nn/beam_search.h>
#include <reel/nn/bilinear.h>
#include <reel/nn/carried_states.h>
#include <reel/nn/cells.h>
#include <reel/nn/convolution.h>
#include <reel/nn/crf.h>
#include <reel/nn/dropout.h>
#include <reel/nn/embedding.h>
#include <reel/nn/flatten.h>
#include <reel/nn/functional_call.h>
#include <reel/nn/group_norm.h>
#include <reel/nn/gru.h>
#include <reel/nn/highway.h>
#include <reel/nn/initialise.h>
#include <reel/nn/layer_norm.h>
#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/masked.h>
#include <reel/nn/mixture_of_experts.h>
#include <reel/nn/module.h>
#include <reel/nn/module_list.h>
#include <reel/nn/outputs_of.h>
#include <reel/nn/packed.h>
#include <reel/nn/parametrised.h>
#include <reel/nn/pooling.h>
#include <reel/nn/recurrent.h>
#include <reel/nn/rms_norm.h>
#include <reel/nn/rnn.h>
#include <reel/nn/sequential.h>
#include <reel/nn/spinn.h>
#include <reel/nn/summary.h>
#include <reel/nn/transformer.h>
#include <reel/nn/tree_lstm.h>
#include <reel/nn/unroll.h>
