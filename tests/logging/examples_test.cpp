#include <reel/reel.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of logs.

using namespace reel;

namespace {

// A folder that is the working directory during its lifetime.
class InFolder {
 public:
  InFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(std::filesystem::path(folder_.file()).parent_path());
  }
  ~InFolder() { std::filesystem::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  reel_test::Folder folder_;
  std::filesystem::path before_;
};

}  // namespace

TEST_CASE("the example of a log writes numbers and a text") {
  InFolder folder;
  {
#include "examples/logging_writer_1.h"
  } std::string csv = reel_test::bytes_of("runs/first/scalars.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 101);
}

TEST_CASE("the example of a plot writes a page") {
  InFolder folder;
  { logging::Writer("runs").scalar("loss", 1, 1); }
#include "examples/logging_plot_1.h"
  CHECK(reel_test::bytes_of("curves.html").find("<figcaption>loss</figcaption>") != std::string::npos);
}

TEST_CASE("the example of a figure writes a picture") {
  InFolder folder;
  {
#include "examples/logging_writer_2.h"
  }
  for (const auto& entry : std::filesystem::directory_iterator("runs/figures"))
    CHECK(reel_test::bytes_of(entry.path().string()).find("PNG") != std::string::npos);
}
