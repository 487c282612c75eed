#pragma once

#include <reel/nn/carried_states.h>
#include <reel/nn/embedding.h>
#include <reel/nn/gru.h>
#include <reel/nn/initialise.h>
#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/masked.h>
#include <reel/nn/module.h>
#include <reel/nn/module_list.h>
#include <reel/nn/packed.h>
#include <reel/nn/recurrent.h>
#include <reel/nn/rnn.h>
#include <reel/nn/sequential.h>
#include <reel/nn/summary.h>
