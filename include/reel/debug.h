#pragma once

#include <reel/debug/gradcheck.h>
#include <reel/debug/listen.h>
#include <reel/debug/ops.h>
