#include <limits>
#include <string>

#include <fmt/format.h>

#include "catch.h"
#include "logging/crc32c.h"
#include "logging/histogram.h"
#include "logging/summary.h"

using namespace reel::logging;

namespace {

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

TEST_CASE("the check of bytes is that of the standard's examples") {
  // RFC 3720, appendix B.4.
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  CHECK(crc32c(ascending) == 0x46dd794e);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c("") == 0);
}

// The bytes that TensorBoard's own classes write for these events.

TEST_CASE("the record of a number has the bytes that TensorBoard writes") {
  std::string records;
  append_record(records, values_event(1.5, 3, number_value("loss/a", 0.5)));
  CHECK(hexadecimal(records) ==
        "1c00000000000000c8c1951d09000000000000f83f10032a0f0a0d0a066c6f73732f61150000003f558c978d");
}

TEST_CASE("the event of a histogram has the bytes that TensorBoard writes") {
  Histogram histogram;
  histogram.min = -1;
  histogram.max = 2;
  histogram.count = 3;
  histogram.sum = 1.5;
  histogram.sum_of_squares = 5.25;
  histogram.limits = {-1, 0.5, 2.25};
  histogram.in_bucket = {1, 1, 1};
  CHECK(hexadecimal(values_event(1.5, -1, histogram_value("h", histogram))) ==
        "09000000000000f83f10ffffffffffffffffff012a680a660a01682a6109000000000000f0bf1100000000000000401900000000000008"
        "4021"
        "000000000000f83f2900000000000015403218000000000000f0bf000000000000e03f00000000000002403a18000000000000f03f0000"
        "00000000f03f000000000000f03f");
}

TEST_CASE("events of texts, pictures and the start of a session have the bytes that TensorBoard writes") {
  CHECK(hexadecimal(values_event(1.5, 300, text_value("t", "x"))) ==
        "09000000000000f83f10ac022a1e0a1c0a0174420b08071204120208014201784a0a0a060a04746578742002");
  CHECK(hexadecimal(values_event(1.5, 3, image_value("i", 1, 2, 3, "PNG"))) ==
        "09000000000000f83f10032a120a100a0169220b0801100218032203504e47");
  CHECK(hexadecimal(session_start_event(1.5, 7)) == "09000000000000f83f10073a020801");
}

TEST_CASE("numbers that f32 cannot hold become infinite in an event") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(number_value("a", 1e300).bytes() == number_value("a", infinity).bytes());
  CHECK(number_value("a", -1e300).bytes() == number_value("a", -infinity).bytes());
  CHECK(number_value("a", 1e300).bytes() != number_value("a", std::numeric_limits<float>::max()).bytes());
}
