#pragma once

/// \namespace reel::debug
/// Gradient checks, anomaly detection, tensor statistics, live tensors, and listeners to ops.

#include <reel/debug/anomaly.h>
#include <reel/debug/check.h>
#include <reel/debug/debugger.h>
#include <reel/debug/diff.h>
#include <reel/debug/gradcheck.h>
#include <reel/debug/graph.h>
#include <reel/debug/listen.h>
#include <reel/debug/live_tensors.h>
#include <reel/debug/log_placement.h>
#include <reel/debug/name.h>
#include <reel/debug/note.h>
#include <reel/debug/ops.h>
#include <reel/debug/print.h>
#include <reel/debug/profile.h>
#include <reel/debug/recorded_run.h>
#include <reel/debug/recording.h>
#include <reel/debug/report.h>
#include <reel/debug/session.h>
#include <reel/debug/statistics.h>
#include <reel/debug/warn_sync.h>
