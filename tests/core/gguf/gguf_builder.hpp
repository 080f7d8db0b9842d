#pragma once
// Builds GGUF files in memory, right ones and, field by field, wrong ones.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::tests {

using bytes = std::vector<std::byte>;

inline void put_raw(bytes& to, const void* from, size_t size) {
  // Not insert(): g++ 12 at -O3 sees an overflow in it that is not there (GCC bug 107852).
  const std::size_t before = to.size();
  to.resize(before + size);
  if (size != 0) std::memcpy(to.data() + before, from, size);
}

template <class T>
void put(bytes& to, T number) {
  put_raw(to, &number, sizeof number);
}

inline void put_text(bytes& to, std::string_view text) {
  put<uint64_t>(to, text.size());
  put_raw(to, text.data(), text.size());
}

struct gguf_builder {
  struct entry {
    std::string key;
    bytes value;  // type and content
  };
  struct tensor {
    std::string name;
    std::vector<uint64_t> ne;
    uint32_t type = 0;
    bytes data;
    std::optional<uint64_t> offset;  // otherwise behind the one before
    std::optional<uint32_t> rank;    // otherwise ne.size()
  };
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> n_entries;  // otherwise the truth
  std::optional<uint64_t> n_tensors;
  uint64_t alignment = 32;  // that the layout follows; general.alignment is an entry of its own
  std::vector<entry> entries;
  std::vector<tensor> tensors;

  // A metadata value given as its bytes.
  gguf_builder& raw(std::string key, uint32_t type, bytes content = {}) {
    bytes value;
    put(value, type);
    value.insert(value.end(), content.begin(), content.end());
    erase(key);
    entries.push_back({std::move(key), std::move(value)});
    return *this;
  }
  template <class T>
  gguf_builder& number(std::string key, uint32_t type, T x) {
    bytes content;
    put(content, x);
    return raw(std::move(key), type, std::move(content));
  }
  gguf_builder& u32(std::string key, uint32_t x) { return number(std::move(key), 4, x); }
  gguf_builder& f32(std::string key, float x) { return number(std::move(key), 6, x); }
  gguf_builder& boolean(std::string key, uint8_t x) { return number(std::move(key), 7, x); }
  gguf_builder& text(std::string key, std::string_view x) {
    bytes content;
    put_text(content, x);
    return raw(std::move(key), 8, std::move(content));
  }
  gguf_builder& texts(std::string key, const std::vector<std::string>& all) {
    bytes content;
    put<uint32_t>(content, 8);
    put<uint64_t>(content, all.size());
    for (const std::string& one : all) put_text(content, one);
    return raw(std::move(key), 9, std::move(content));
  }
  template <class T>
  gguf_builder& numbers(std::string key, uint32_t type, const std::vector<T>& all) {
    bytes content;
    put(content, type);
    put<uint64_t>(content, all.size());
    for (const T x : all) put(content, x);
    return raw(std::move(key), 9, std::move(content));
  }
  gguf_builder& erase(std::string_view key) {
    std::erase_if(entries, [&](const entry& e) { return e.key == key; });
    return *this;
  }
  gguf_builder& add(std::string name, std::vector<uint64_t> ne, uint32_t type, bytes data) {
    tensors.push_back({std::move(name), std::move(ne), type, std::move(data), {}, {}});
    return *this;
  }
  gguf_builder& drop(std::string_view name) {
    std::erase_if(tensors, [&](const tensor& t) { return t.name == name; });
    return *this;
  }
  tensor& named(std::string_view name) {
    for (tensor& t : tensors)
      if (t.name == name) return t;
    return tensors.at(tensors.size());  // throws: the test is wrong
  }

  // Up to where the padding before the tensor data begins.
  [[nodiscard]] bytes head() const {
    bytes out;
    put_raw(out, magic.data(), magic.size());
    put(out, version);
    put<uint64_t>(out, n_tensors.value_or(tensors.size()));
    put<uint64_t>(out, n_entries.value_or(entries.size()));
    for (const entry& e : entries) {
      put_text(out, e.key);
      out.insert(out.end(), e.value.begin(), e.value.end());
    }
    uint64_t next = 0;
    for (const tensor& t : tensors) {
      put_text(out, t.name);
      put<uint32_t>(out, t.rank.value_or(static_cast<uint32_t>(t.ne.size())));
      for (const uint64_t n : t.ne) put(out, n);
      put(out, t.type);
      put<uint64_t>(out, t.offset.value_or(next));
      next += (t.data.size() + alignment - 1) / alignment * alignment;
    }
    return out;
  }
  // No padding behind the last tensor.
  [[nodiscard]] bytes build() const {
    bytes out = head();
    for (const tensor& t : tensors) {
      out.resize((out.size() + alignment - 1) / alignment * alignment);
      out.insert(out.end(), t.data.begin(), t.data.end());
    }
    return out;
  }
};

}  // namespace bitnet::tests
