#pragma once

#include <reel/debug/gradcheck.h>
#include <reel/debug/listen.h>
