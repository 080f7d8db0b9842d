#pragma once
// Decides which clients may use the server: by API keys, and by the origin of a web page.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.hpp"
#include "result.hpp"

namespace bitnet::host::http {

// Keys as digests: each comparison looks at all of them and takes the same time for any text.
class api_keys {
 public:
  // Exit code 2 for a key that is empty, longer than 512 bytes, or not visible ASCII.
  [[nodiscard]] result<void> add(std::string_view key);
  // Adds the keys of a file, a key in a line; empty lines and lines that begin with # are none.
  // Exit code 2 for a file that cannot be read, is larger than 1 MiB or holds no key.
  [[nodiscard]] result<void> add_file(const std::string& path);

  [[nodiscard]] bool empty() const { return digests_.empty(); }
  [[nodiscard]] std::size_t size() const { return digests_.size(); }
  [[nodiscard]] bool has(std::string_view key) const;
  // Of `Authorization: Bearer KEY`, or of `x-api-key: KEY`.
  [[nodiscard]] bool admits(const request& asked) const;

 private:
  using digest = std::array<unsigned char, 32>;
  std::vector<digest> digests_;
};

// Pages that a browser lets read answers. Without any, requests of all pages but the server's own
// (own_names.hpp) are refused: a page must not use a server on the user's own machine.
class origin_list {
 public:
  // "https://example.org", or "*" for all. Exit code 2 for another form.
  [[nodiscard]] result<void> add(std::string_view origin);
  // What Access-Control-Allow-Origin says; "": it is not on the list.
  [[nodiscard]] std::string allowed(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
  bool all_ = false;
};

}  // namespace bitnet::host::http
