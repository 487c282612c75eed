#include <reel/reel.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of logs.

using namespace reel;

TEST_CASE("the example of a log writes numbers and a text") {
  reel_test::InFolder folder;
  {
#include "examples/logging_writer_1.h"
  } std::string csv = reel_test::bytes_of("runs/first/scalars.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 101);
}

TEST_CASE("the example of a plot writes a page") {
  reel_test::InFolder folder;
  { logging::Writer("runs").scalar("loss", 1, 1); }
#include "examples/logging_plot_1.h"
  CHECK(reel_test::bytes_of("curves.html").find("<figcaption>loss</figcaption>") != std::string::npos);
}

TEST_CASE("the example of a figure writes a picture") {
  reel_test::InFolder folder;
  std::string said = reel_test::error_of<io::FileError>([] {
#include "examples/logging_writer_2.h"
  });
  if (said.find("libreel_figure.so") != said.npos) return reel_test::skip("this build has no cairo");
  CHECK(said.empty());
  for (const auto& entry : std::filesystem::directory_iterator("runs/figures"))
    CHECK(reel_test::bytes_of(entry.path().string()).find("PNG") != std::string::npos);
}
