// What --device may say. One row, one request.

#include "select/request.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "bitnet/abi/info.h"

namespace bitnet::select {
namespace {

using kind = wish::kind_type;

struct row {
  const char* why;
  std::string text;
  std::vector<std::string> items;  // as they come out
  const char* error;               // in the message, "" when it parses
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class requests : public testing::TestWithParam<row> {};

TEST_P(requests, are_parsed) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  const auto parsed = parse_request(r.text, "--device");
  if (r.error[0] == '\0') {
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    std::vector<std::string> items;
    for (const wish& w : *parsed) items.push_back(w.text);
    EXPECT_EQ(items, r.items);
    return;
  }
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().status, BITNET_INVALID_ARGUMENT);
  for (const char* text : {r.error, "(from --device)", "write auto, cpu, gpu, npu"})
    EXPECT_NE(parsed.error().message.find(text), std::string::npos)
        << "'" << text << "' is not in: " << parsed.error().message;
}

const row rows[] = {
    {"auto", "auto", {"auto"}, ""},
    {"nothing is auto", "", {"auto"}, ""},
    {"blanks are nothing", " \t ", {"auto"}, ""},
    {"a class", "gpu", {"gpu"}, ""},
    {"a third party's name", "org.example-npu_2", {"org.example-npu_2"}, ""},
    {"with an index", "cuda:1", {"cuda:1"}, ""},
    {"a list with blanks", " cuda:0 ,\tcpu ", {"cuda:0", "cpu"}, ""},
    {"capitals", "CUDA,Cpu", {"cuda", "cpu"}, ""},
    {"an item twice counts once", "cpu,cuda,cpu", {"cpu", "cuda"}, ""},
    {"two devices of one backend are two", "cuda:0,cuda:1", {"cuda:0", "cuda:1"}, ""},
    {"the largest index", "cuda:9999", {"cuda:9999"}, ""},

    {"an empty item", "cpu,,gpu", {}, "an item of the list is empty"},
    {"an empty first item", ",cpu", {}, "empty"},
    {"an empty last item", "cpu,", {}, "empty"},
    {"a blank item", "cpu, ,gpu", {}, "empty"},
    {"only a comma", ",", {}, "empty"},
    {"an empty index", "cuda:", {}, "'' is no device index"},
    {"a negative index", "cuda:-1", {}, "'-1' is no device index"},
    {"a signed index", "cuda:+1", {}, "'+1' is no device index"},
    {"a word as index", "cuda:one", {}, "'one' is no device index; expected a number like cuda:0"},
    {"an index with a tail", "cuda:1x", {}, "'1x' is no device index"},
    {"an index beyond reason", "cuda:10000", {}, "no device index"},
    {"an index beyond every type", "cuda:99999999999999999999", {}, "no device index"},
    {"two indices", "cuda:1:2", {}, "'1:2' is no device index"},
    {"an index without a name", ":1", {}, "'' is no backend name"},
    {"an index of auto", "auto:0", {}, "auto takes no device index"},
    {"a path", "../cuda", {}, "'../cuda' is no backend name"},
    {"blanks inside", "my cpu", {}, "'my cpu' is no backend name"},
    {"an escape sequence", "\033[2J", {}, "'\\x1b[2j' is no backend name"},
    {"a name that is too long", std::string(33, 'a'), {}, "is no backend name"},
    {"a request that is too long", std::string(257, ','), {}, "more than 256 bytes"},
};

INSTANTIATE_TEST_SUITE_P(rows, requests, testing::ValuesIn(rows));

TEST(request_items, know_what_they_mean) {
  const auto list = parse_request("auto,cpu,gpu:2,npu,mine:1,other", "test");
  ASSERT_TRUE(list.has_value());
  const std::vector<wish>& w = *list;
  EXPECT_EQ(w[0].kind, kind::any);
  EXPECT_EQ(w[1].kind, kind::device_class);
  EXPECT_EQ(w[1].device_class, BITNET_DEVICE_CPU);
  EXPECT_EQ(w[2].device_class, BITNET_DEVICE_GPU);
  EXPECT_EQ(w[2].index, 2U);
  EXPECT_EQ(w[3].device_class, BITNET_DEVICE_NPU);
  EXPECT_FALSE(w[3].index.has_value());
  EXPECT_EQ(w[4].kind, kind::name);
  EXPECT_EQ(w[4].name, "mine");
  EXPECT_EQ(w[4].text, "mine:1");
  EXPECT_EQ(w[4].index, 1U);
  EXPECT_EQ(w[5].name, "other");
  EXPECT_FALSE(w[5].index.has_value());
}

}  // namespace
}  // namespace bitnet::select
