// Any bytes of a connection: requests or one rejection, the same whole and in pieces, within
// bounds.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/policy.hpp"
#include "http/request_reader.hpp"

namespace {

using bitnet::host::http::request_reader;

bitnet::host::http::limits small() {
  bitnet::host::http::limits out;
  out.head_bytes = 512;
  out.fields = 12;
  return out;
}

void check(bool holds) {
  if (!holds) std::abort();
}

// All that was read, as one text.
std::string read_all(std::string_view bytes, std::size_t piece) {
  using state = request_reader::state;
  constexpr std::size_t most_body = 256;
  static const bitnet::host::http::policy rules = [] {
    bitnet::host::http::policy out;
    out.routes.add({.method = "POST", .paths = {"/a/{b}"}, .summary = "", .handle = {}});
    out.names.add("named");
    return out;
  }();
  request_reader reader(small());
  std::string in, out;
  while (!bytes.empty()) {
    in += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool more = true; more;) {
      const std::size_t used = reader.take(in);
      check(used <= in.size());
      in.erase(0, used);
      more = used != 0 && !in.empty();
      check(reader.body_size() <= most_body);
      if (reader.at() == state::decide) {
        out += bitnet::host::http::decide(rules, reader.read()).at_once ? "no " : "yes ";
        reader.go_on(most_body);
        more = true;
      }
      if (reader.at() == state::done) {
        const auto got = reader.take_request();
        check(got.body.size() <= most_body && got.fields.size() <= small().fields);
        out += got.method + ' ' + got.path + '?' + got.query + ' ' + got.body + '\n';
        more = true;
      }
      if (reader.at() == state::rejected) {
        check(reader.reason().status >= 400 && reader.reason().message.size() < 400);
        return out + std::to_string(reader.reason().status);
      }
    }
    check(in.size() <= small().head_bytes);
  }
  return out;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string one = read_all(bytes, 1);
  check(read_all(bytes, 5) == one);
  check(read_all(bytes, std::max<std::size_t>(size, 1)) == one);
  return 0;
}
