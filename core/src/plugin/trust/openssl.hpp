#pragma once
// Owning pointers to OpenSSL's objects, and texts in its memory.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace bitnet::openssl {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* thing) const {
    Free(thing);
  }
};
using bio = std::unique_ptr<BIO, freed_by<BIO_free>>;
using key_handle = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using digest_context = std::unique_ptr<EVP_MD_CTX, freed_by<EVP_MD_CTX_free>>;
using digest_kind = std::unique_ptr<EVP_MD, freed_by<EVP_MD_free>>;

// Removes the errors that OpenSSL reports while this object lives. The thread's queue of errors
// belongs to the program.
class own_errors {
 public:
  own_errors() { ERR_set_mark(); }
  ~own_errors() { ERR_pop_to_mark(); }
  own_errors(const own_errors&) = delete;
  own_errors& operator=(const own_errors&) = delete;
};

// There is no user to type a password.
inline int no_password(char*, int, int, void*) {
  return -1;
}

inline const unsigned char* unsigned_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Reads a text that outlives it; nullptr if memory is exhausted.
inline bio reader_of(std::string_view text) {
  return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The text that was written to a memory BIO.
inline std::string text_in(BIO* of) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(of, &text);
  return size <= 0 ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

}  // namespace bitnet::openssl
