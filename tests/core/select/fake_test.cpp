#include "select/fake.hpp"

#include <gtest/gtest.h>

namespace bitnet::select {
namespace {

std::string said(const std::vector<fake_backend>& all) {
  std::string out;
  for (const auto& one : all) out += one.name + ":" + std::to_string(one.n_devices) + " ";
  return out;
}

TEST(fakes, have_one_grammar) {
  const struct {
    const char *text, *means;
  } rows[] = {{"", ""},
              {"none", ""},
              {" None ", ""},
              {"cuda", "cuda:1 "},
              {"CUDA, rocm:2", "cuda:1 rocm:2 "},
              {"org.example.npu:64", "org.example.npu:64 "}};
  for (const auto& r : rows) {
    const auto parsed = parse_fakes(r.text);
    ASSERT_TRUE(parsed.has_value()) << r.text << ": " << parsed.error().message;
    EXPECT_EQ(said(*parsed), r.means) << r.text;
  }
  for (const char* bad :
       {",", "cuda,", "cuda,,rocm", "cuda;rocm", "cuda|rocm", "cuda:", "cuda:0", "cuda:65",
        "cuda:x", "cuda:1x", "cuda,cuda:2", "auto", "none,cuda", "-x", "cuda\n", "cuda rocm"}) {
    const auto parsed = parse_fakes(bad);
    ASSERT_FALSE(parsed.has_value()) << bad;
    EXPECT_NE(parsed.error().message.find("expected none, or a comma list"), std::string::npos);
  }
  EXPECT_FALSE(parse_fakes(std::string(300, 'a')).has_value());
}

}  // namespace
}  // namespace bitnet::select
