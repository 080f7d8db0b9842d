// Frames: what goes in comes out however it is cut, and nothing else does.

#include "probe/frame.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace bitnet::probe {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(frame, survives_any_cut) {
  const std::string stream = encode(frame_kind::begin, "\1") + encode(frame_kind::facts, "{}") +
                             encode(frame_kind::done, "");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    frame_reader reader;
    std::string seen;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(bytes_of(stream.substr(at, piece)));
      for (auto one = reader.next(); *one; one = reader.next())
        seen += std::to_string(static_cast<int>((*one)->kind)) + "'" + (*one)->payload + "'";
    }
    EXPECT_EQ(seen, "2'\1'4'{}'5''") << "in pieces of " << piece;
  }
}

struct row {
  const char* why;
  std::size_t at;  // byte that changes
  char to;
  const char* mention;
};
std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}
class damage : public testing::TestWithParam<row> {};

TEST_P(damage, is_reported) {
  std::string stream = encode(frame_kind::facts, "{\"devices\":[]}");
  stream[GetParam().at] = GetParam().to;
  frame_reader reader;
  reader.feed(bytes_of(stream));
  const auto got = reader.next();
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, plugin::code::probe_message);
  EXPECT_NE(got.error().reason.find(GetParam().mention), std::string::npos) << got.error().reason;
}

const row rows[] = {
    {"another beginning", 0, 'X', "begins with 'XNP1'"},
    {"a kind that is none", 4, 9, "its kind is 9"},
    {"no kind", 4, 0, "its kind is 0"},
    {"a size that no message has", 12, 1, "bytes; at most 16777216"},
    {"another payload", 25, 'x', "checksum"},
    {"another checksum", 17, 0, "checksum"},
};
INSTANTIATE_TEST_SUITE_P(rows, damage, testing::ValuesIn(rows));

}  // namespace
}  // namespace bitnet::probe
