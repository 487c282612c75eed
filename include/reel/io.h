#pragma once

#include <reel/io/safetensors.h>
#include <reel/io/text.h>
#include <reel/io/weights.h>
