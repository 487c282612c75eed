#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run_log.h"

namespace reel::logging {

/// The curve of one run in a chart.
struct ChartCurve {
  std::size_t run;                 ///< the index of the run, which its colour and dashes depend on
  std::vector<At<double>> points;  ///< in ascending order of the steps
};

/// At most about `most` points of a curve, among them the extremes of each part.
std::vector<At<double>> thinned(const std::vector<At<double>>& points, std::size_t most);

/// Curves over the steps as SVG, whose colours are those of the page's style sheet. `name` is the tag, `runs` the names
/// of all runs.
std::string curves_svg(const std::string& name, const std::vector<ChartCurve>& curves,
                       const std::vector<std::string>& runs);

/// Histograms over the steps as SVG: a column for each step, darker where there are more elements.
std::string histograms_svg(const std::string& name, const std::vector<At<Histogram>>& histograms);

}  // namespace reel::logging
