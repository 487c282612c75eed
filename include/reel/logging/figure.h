#pragma once

#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::logging {

/// A curve of a LinePlot: points that are joined in the order given.
struct Curve {
  std::string name;       ///< as the legend shows it; empty: not in the legend
  std::vector<double> x;  ///< the horizontal positions; empty: 0, 1, 2, …
  std::vector<double> y;  ///< the values, as many as `x`; the curve breaks where one is NaN or ±∞
};

/// Curves in one pair of axes, to be logged by `Writer::figure`.
struct LinePlot {
  std::string title = {};          ///< above the plot; default none
  std::string x_label = {};        ///< below the horizontal axis; default none
  std::string y_label = {};        ///< above the vertical axis; default none
  std::vector<Curve> curves = {};  ///< drawn in this order, in colours that can be told apart
  bool log_y = false;              ///< whether the vertical axis is logarithmic, without values up to 0; default false
  int width = 640;                 ///< of the picture, in pixels, in [64, 8192]; default 640
  int height = 480;                ///< of the picture, in pixels, in [64, 8192]; default 480
};

/// A matrix as a picture whose colours are its values, to be logged by `Writer::figure`: an attention map or a
/// confusion matrix.
struct HeatMap {
  std::string title = {};                       ///< above the picture; default none
  std::string x_label = {};                     ///< below the columns; default none
  std::string y_label = {};                     ///< above the rows; default none
  Tensor values = {};                           ///< (rows, columns): of any dtype; NaN and ±∞ are grey
  std::vector<std::string> row_labels = {};     ///< one for each row, or none; default none
  std::vector<std::string> column_labels = {};  ///< one for each column, or none; default none
  int width = 640;                              ///< of the picture, in pixels, in [64, 8192]; default 640
  int height = 480;                             ///< of the picture, in pixels, in [64, 8192]; default 480
};

}  // namespace reel::logging
