#pragma once

#include <reel/ops/create.h>
#include <reel/ops/einsum.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/loss.h>
#include <reel/ops/matmul.h>
#include <reel/ops/random.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/softmax.h>
#include <reel/ops/sort.h>
