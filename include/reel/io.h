#pragma once

/// \namespace reel::io
/// Files of tensors and weights (safetensors, NumPy's), images, sounds and text files; models in ONNX files by `io/onnx.h`.

#include <reel/io/audio.h>
#include <reel/io/dlpack.h>
#include <reel/io/hdf5.h>
#include <reel/io/image.h>
#include <reel/io/numpy.h>
#include <reel/io/pytorch.h>
#include <reel/io/safetensors.h>
#include <reel/io/tensor_file.h>
#include <reel/io/text.h>
#include <reel/io/weights.h>
