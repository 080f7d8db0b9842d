#include "signature/keys.hpp"

#include <fmt/core.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>
#include <span>

#include "base/wording.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/openssl.hpp"
#include "receipt/envelope.hpp"
#include "system/limits.hpp"

namespace bitnet::signature {
namespace {

using openssl::bio;
using openssl::digest_context;
using openssl::freed_by;
using openssl::key_handle;
using openssl::no_password;
using openssl::own_errors;
using openssl::reader_of;
using openssl::text_in;
using openssl::unsigned_bytes;
using certificate_handle = std::unique_ptr<X509, freed_by<X509_free>>;
using store_handle = std::unique_ptr<X509_STORE, freed_by<X509_STORE_free>>;
using check_handle = std::unique_ptr<X509_STORE_CTX, freed_by<X509_STORE_CTX_free>>;
struct stack_closer {
  void operator()(STACK_OF(X509) * all) const { sk_X509_pop_free(all, X509_free); }
};
using stack_handle = std::unique_ptr<STACK_OF(X509), stack_closer>;

std::string sha256_text(std::string_view bytes) {
  return plugin::sha256_of(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// The digest for the key's curve; "" and nullptr for other keys.
struct curve_row {
  const char* group;
  const EVP_MD* (*digest)();
};
constexpr std::array curves = {curve_row{"prime256v1", EVP_sha256},
                               curve_row{"secp384r1", EVP_sha384},
                               curve_row{"secp521r1", EVP_sha512}};

const EVP_MD* digest_for(const EVP_PKEY* key) {
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return nullptr;
  std::array<char, 64> group{};
  std::size_t size = 0;
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) != 1) return nullptr;
  for (const curve_row& row : curves)
    if (std::string_view(group.data(), size) == row.group) return row.digest();
  return nullptr;
}

// The tools' id of a key. They write points uncompressed, whatever they read.
std::string id_of(EVP_PKEY* key) {
  const bio out(BIO_new(BIO_s_mem()));
  if (!out ||
      EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                     OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED) != 1 ||
      PEM_write_bio_PUBKEY(out.get(), key) != 1)
    return "";
  return sha256_text(text_in(out.get()));
}

bool is_signed(const bundle& of, EVP_PKEY* key) {
  const std::string message = receipt::signed_bytes(receipt::payload_type, of.payload);
  const digest_context c(EVP_MD_CTX_new());
  return c && EVP_DigestVerifyInit(c.get(), nullptr, digest_for(key), nullptr, key) == 1 &&
         EVP_DigestVerify(c.get(), unsigned_bytes(of.signature), of.signature.size(),
                          unsigned_bytes(message), message.size()) == 1;
}

std::unexpected<failure> not_signed(const std::string& key) {
  return reject("dsseEnvelope.signatures[0].sig",
                fmt::format("expected a signature of dsseEnvelope.payload by the key {}, found "
                            "another: one of the two was changed; get the signature again from "
                            "those who signed the model",
                            key));
}

certificate_handle certificate_in(const std::string& der) {
  const unsigned char* at = unsigned_bytes(der);
  const unsigned char* const end = at + der.size();
  certificate_handle out(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  return at == end ? std::move(out) : nullptr;
}

std::string subject_of_certificate(X509* of) {
  const bio out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), X509_get_subject_name(of), 0, XN_FLAG_RFC2253) < 0)
    return "";
  return plugin::printable(text_in(out.get()), 400);
}

// OpenSSL gives no object where the memory is spent.
std::unexpected<failure> no_room_for(const char* what) {
  return fail(BITNET_OUT_OF_MEMORY,
              fmt::format("out of memory for {}{}; end programs that use much memory", what,
                          limits::of_memory()));
}

result<store_handle> trusted_in(const std::string& pem) {
  const bio in = reader_of(pem);
  store_handle store(X509_STORE_new());
  if (!in || !store) return no_room_for("the certificates of the signer's authority");
  std::size_t n = 0;
  while (const certificate_handle one{PEM_read_bio_X509(in.get(), nullptr, no_password, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), one.get()) != 1) break;
    ++n;
  }
  // The loop ends at the end of the file, or at an unreadable certificate.
  if (n == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{}: expected certificates in PEM, found {}", say(word::signature_ca),
                            n == 0 ? "none" : "one that cannot be read"));
  return store;
}

// The tools' rule: key usage or extended key usage permits signing.
bool may_sign(X509* certificate) {
  const uint32_t flags = X509_get_extension_flags(certificate);
  const bool by_usage =
      (flags & EXFLAG_KUSAGE) != 0 && (X509_get_key_usage(certificate) & KU_DIGITAL_SIGNATURE) != 0;
  const bool by_purpose = (flags & EXFLAG_XKUSAGE) != 0 &&
                          (X509_get_extended_key_usage(certificate) & XKU_CODE_SIGN) != 0;
  return by_usage || by_purpose;
}

constexpr const char* chain_field = "verificationMaterial.x509CertificateChain.certificates";

result<stack_handle> chain_of(const bundle& of) {
  stack_handle out(sk_X509_new_null());
  for (std::size_t i = 0; i < of.certificates.size(); ++i) {
    certificate_handle one = certificate_in(of.certificates[i]);
    if (!one)
      return reject(fmt::format("{}[{}].rawBytes", chain_field, i),
                    "expected a certificate in DER, found something else");
    if (!out || sk_X509_push(out.get(), one.get()) == 0)
      return no_room_for("the signature's certificates");
    static_cast<void>(one.release());  // the stack owns it now
  }
  return out;
}

result<void> check_chain(X509* signing, STACK_OF(X509) * chain, X509_STORE* trusted) {
  std::tm from{};
  const check_handle check(X509_STORE_CTX_new());
  if (!check || X509_STORE_CTX_init(check.get(), trusted, signing, chain) != 1)
    return no_room_for("a check of the signature's certificates");
  if (ASN1_TIME_to_tm(X509_get0_notBefore(signing), &from) != 1)
    return reject(fmt::format("{}[0]", chain_field), "it does not say from when on it is valid");
  X509_STORE_CTX_set_time(check.get(), 0, ::timegm(&from));
  if (X509_verify_cert(check.get()) == 1) return {};
  const int depth = X509_STORE_CTX_get_error_depth(check.get());
  return reject(chain_field,
                fmt::format("expected a chain to a certificate of {}, found at place {}: {}; name "
                            "the certificate of the authority that certified the signer",
                            say(word::signature_ca), depth,
                            X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()))));
}

}  // namespace

result<signer> verify_by_key(const bundle& of, const std::string& public_pem) {
  const own_errors scope;
  const bio in = reader_of(public_pem);
  const key_handle key(in ? PEM_read_bio_PUBKEY(in.get(), nullptr, no_password, nullptr) : nullptr);
  if (digest_for(key.get()) == nullptr)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{}: expected a public ECDSA key in PEM on P-256, P-384 or P-521, "
                            "found {}; make it of the private key by `openssl ec -pubout`",
                            say(word::signature_key), key ? "another kind of key" : "none"));
  if (!of.certificates.empty())
    return reject(
        "verificationMaterial",
        fmt::format("expected publicKey, found x509CertificateChain: it was signed with a "
                    "certificate; give {} in place of {}",
                    say(word::signature_ca), say(word::signature_key)));
  signer out{.key = id_of(key.get()), .certificate = "", .subject = ""};
  if (!of.key_hint.empty() && of.key_hint != out.key)
    return reject("verificationMaterial.publicKey.hint",
                  fmt::format("expected the key {}, found {}: another key signed it; get that key "
                              "from those who signed the model, or the signature of this one",
                              out.key, plugin::printable(of.key_hint)));
  if (!is_signed(of, key.get())) return not_signed(out.key);
  return out;
}

result<signer> verify_by_certificate(const bundle& of, const std::string& trusted_pem) {
  const own_errors scope;
  const auto trusted = trusted_in(trusted_pem);
  if (!trusted) return std::unexpected(trusted.error());
  if (of.certificates.empty())
    return reject(
        "verificationMaterial",
        fmt::format("expected x509CertificateChain, found publicKey: it was signed with a "
                    "key; give {} in place of {}",
                    say(word::signature_key), say(word::signature_ca)));
  const auto chain = chain_of(of);
  if (!chain) return std::unexpected(chain.error());
  X509* const signing = sk_X509_value(chain->get(), 0);
  if (auto ok = check_chain(signing, chain->get(), trusted->get()); !ok)
    return std::unexpected(std::move(ok.error()));
  if (!may_sign(signing))
    return reject(fmt::format("{}[0]", chain_field),
                  "expected the key usage digitalSignature or codeSigning: this certificate may "
                  "not sign");
  EVP_PKEY* const key = X509_get0_pubkey(signing);
  if (digest_for(key) == nullptr)
    return reject(fmt::format("{}[0]", chain_field),
                  "expected an ECDSA key on P-256, P-384 or P-521, found another kind");
  signer out{.key = id_of(key),
             .certificate = sha256_text(of.certificates.front()),
             .subject = subject_of_certificate(signing)};
  if (!is_signed(of, key)) return not_signed(out.key);
  return out;
}

}  // namespace bitnet::signature
