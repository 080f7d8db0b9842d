#include "signature/model_judge.hpp"

#include <fmt/core.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/wording.hpp"
#include "gguf/mapping.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/ed25519.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/openssl.hpp"
#include "plugin/trust/trust.hpp"
#include "system/limits.hpp"

namespace bitnet::signature {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = std::size_t{1} << 20;  // read at once
constexpr std::size_t shown_names = 3;                     // of files that are missing
constexpr std::size_t longest_shown = 100;                 // bytes of a name

std::string quoted_name(const fs::path& path) {
  return fmt::format("'{}'", plugin::printable(path.string(), longest_shown));
}

fs::path absolute_path(const fs::path& path) {
  std::error_code ignored;
  return fs::absolute(path, ignored).lexically_normal();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// A folder without the slash at its end.
fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

result<std::string> text_of(const fs::path& file, uint64_t most) {
  const auto opened = plugin::open_any(file);
  if (!opened) return fail(BITNET_NOT_FOUND, opened.error().reason);
  auto text = plugin::read_all(*opened, most);
  if (!text) return fail(BITNET_BAD_DATA, text.error().reason);
  return *std::move(text);
}

// Why OpenSSL computed no digest; lack of memory is thrown. Providers of FIPS, for example, have no
// BLAKE2b.
std::unexpected<failure> no_digest(const char* of) {
  const unsigned long code = ERR_peek_last_error();
  if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  const char* const reason = ERR_reason_error_string(code);
  return fail(BITNET_UNSUPPORTED,
              fmt::format("expected that OpenSSL computes {}, which the signature uses, found: {}; "
                          "enable a provider of OpenSSL that has this hash",
                          of, reason != nullptr ? reason : "a failure without a reason"));
}

// Finds the signature's file.
result<fs::path> place_of(const request& asked) {
  if (!asked.signature.empty()) return asked.signature;
  const std::vector<fs::path> places = usual_places(asked.model);
  for (const fs::path& one : places) {
    std::error_code ignored;
    if (fs::exists(one, ignored)) return one;
  }
  return reject(quoted_name(asked.model),
                fmt::format("expected a signature, found neither {} nor {}; name its file in {}",
                            quoted_name(places[0]), quoted_name(places[1]), say(word::signature)));
}

result<signer> verify(const bundle& signed_by, const request& asked) {
  const bool by_key = !asked.key.empty();
  const fs::path& file = by_key ? asked.key : asked.ca;
  const auto pem = text_of(file, by_key ? plugin::max_key_bytes : longest_bundle);
  if (!pem)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{}: {}", say(by_key ? word::signature_key : word::signature_ca),
                            pem.error().message));
  return by_key ? verify_by_key(signed_by, *pem) : verify_by_certificate(signed_by, *pem);
}

// A message of bitnet_error has no room for two full digests.
std::string shortened(const std::string& digest) {
  constexpr std::size_t digits = 16;
  return digest.substr(0, digits) + "...";
}

}  // namespace

std::vector<fs::path> usual_places(const fs::path& model) {
  const fs::path bare = without_slash(model);
  const fs::path beside = bare.string() + ".sig";
  if (is_folder(model)) return {model / "model.sig", beside};
  return {beside, bare.parent_path() / "model.sig"};
}

result<std::unique_ptr<model_judge>> model_judge::make(const request& asked) {
  if (asked.key.empty() == asked.ca.empty())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a signature is verified by {} or by {}: give one of the two",
                            say(word::signature_key), say(word::signature_ca)));
  std::unique_ptr<model_judge> out(new model_judge);
  out->asked_ = asked;
  auto place = place_of(asked);
  if (!place) return std::unexpected(std::move(place.error()));
  out->asked_.signature = *std::move(place);
  const auto text = text_of(out->asked_.signature, longest_bundle);
  if (!text) return reject("the signature", text.error().message);
  const auto signed_by = read_bundle(*text);
  if (!signed_by) return out->within_signature(signed_by.error());
  auto by = verify(*signed_by, asked);
  if (!by) return out->within_signature(std::move(by.error()));
  auto listed = read_manifest(signed_by->payload);  // only after the signer is verified
  if (!listed) return out->within_signature(std::move(listed.error()));
  out->listed_ = *std::move(listed);
  out->outcome_ = {*std::move(by), out->listed_.digest, out->listed_.files.size()};
  for (const auto step : {&model_judge::find_root, &model_judge::check_presence})
    if (auto ok = (out.get()->*step)(); !ok) return out->within_signature(std::move(ok.error()));
  return out;
}

std::unexpected<failure> model_judge::within_signature(failure why) const {
  if (why.status != BITNET_REJECTED) return std::unexpected(std::move(why));
  return std::unexpected(
      std::move(why).within(fmt::format("the signature {}", quoted_name(asked_.signature))));
}

// Finds the nearest folder above the model under which the signature lists it: a repository is
// signed as a whole, and the model may lie in a subfolder.
result<void> model_judge::find_root() {
  model_ = absolute_path(asked_.model);
  const bool folder = is_folder(model_);
  if (folder) model_ = without_slash(model_);
  if (listed_.is_one_file()) {
    if (folder)
      return reject("predicate.resources[0].name",
                    fmt::format("expected the files of the folder {}, found '.': one file was "
                                "signed; sign the folder",
                                quoted_name(model_)));
    return {};
  }
  const fs::path main = folder ? model_ / "config.json" : model_;
  for (root_ = main.parent_path(); !listed_.files.contains(name_of(main));
       root_ = root_.parent_path())
    if (root_ == root_.root_path())
      return reject("predicate.resources",
                    fmt::format("{} is not in it: it is of another model, or the folder was "
                                "signed without it; sign the model's folder",
                                quoted_name(main.filename())));
  return {};
}

fs::path model_judge::path_of(const std::string& name) const {
  return listed_.is_one_file() ? model_ : root_ / name;
}

std::string model_judge::name_of(const fs::path& file) const {
  if (listed_.is_one_file()) return file == model_ ? "." : file.filename().string();
  return file.lexically_relative(root_).generic_string();
}

result<void> model_judge::check_presence() {
  std::vector<std::string> gone;
  for (const auto& [name, pieces] : listed_.files) {
    std::error_code absent;
    const uint64_t size = fs::file_size(path_of(name), absent);
    if (absent)
      gone.push_back(quoted_name(name));
    else
      total_ += size;
  }
  if (gone.empty()) return {};
  const std::size_t n = gone.size();
  gone.resize(std::min(n, shown_names));
  return reject("predicate.resources",
                fmt::format("{} of {} files that were signed are not in {}: {}{}; download the "
                            "model again",
                            n, listed_.files.size(),
                            quoted_name(listed_.is_one_file() ? model_.parent_path() : root_),
                            plugin::join(gone, ", "), n > shown_names ? ", ..." : ""));
}

result<void> model_judge::admit(const gguf::mapping& file) {
  const std::string name = name_of(absolute_path(file.path()));
  if (!listed_.files.contains(name))
    return within_signature(
        reject("predicate.resources",
               fmt::format("{} is a part of the model and is not in it; {}", quoted_name(name),
                           listed_.is_one_file()
                               ? "one file was signed: sign the folder with all parts"
                               : "remove the file, or get the model again"))
            .error());
  if (auto ok = check_file(name, file.descriptor(), file.bytes().size()); !ok)
    return within_signature(std::move(ok.error()));
  agreed_.insert(name);
  return {};
}

result<void> model_judge::conclude() {
  for (const auto& [name, pieces] : listed_.files) {
    if (agreed_.contains(name)) continue;
    const auto opened = plugin::open_any(path_of(name));
    if (!opened)
      return within_signature(reject("predicate.resources", opened.error().reason).error());
    if (auto ok = check_file(name, opened->fd.get(), opened->identity.size_bytes); !ok)
      return within_signature(std::move(ok.error()));
  }
  return {};
}

result<void> model_judge::check_file(const std::string& name, int descriptor, uint64_t size) {
  const std::vector<piece>& pieces = listed_.files.at(name);
  if (const uint64_t end = pieces.back().end; end != to_the_end && end != size)
    return reject(fmt::format("predicate.resources[{}].name", pieces.back().resource),
                  fmt::format("expected {} bytes in {}, found {}: it is not the file that was "
                              "signed; download it again",
                              end, quoted_name(path_of(name).filename()), size));
  for (const piece& one : pieces)
    if (auto ok = check_piece(name, one, descriptor, size); !ok) return ok;
  return {};
}

// Reads in pieces: the pages of a mapping would stay in memory.
result<void> model_judge::check_piece(const std::string& name, const piece& one, int descriptor,
                                      uint64_t size) const {
  const openssl::own_errors errors;
  const openssl::digest_context sum(EVP_MD_CTX_new());
  if (!sum) throw std::bad_alloc();
  const char* const hash = listed_.hash == hash_kind::sha256 ? "SHA2-256" : "BLAKE2B-512";
  const openssl::digest_kind kind(EVP_MD_fetch(nullptr, hash, nullptr));
  if (!kind || EVP_DigestInit_ex(sum.get(), kind.get(), nullptr) != 1) return no_digest(hash);
  std::vector<std::byte> bytes(piece_bytes);
  const uint64_t end = std::min(one.end, size);
  for (uint64_t at = one.begin; at < end;) {
    if (asked_.goes_on && !asked_.goes_on(total_))
      return fail(BITNET_CANCELLED, "cancelled while the signature was verified");
    const auto wanted = static_cast<std::size_t>(std::min<uint64_t>(bytes.size(), end - at));
    const ssize_t n = ::pread(descriptor, bytes.data(), wanted, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return bad_data(fmt::format("{}: expected {} bytes, found {}: {}", quoted_name(name), end, at,
                                  n < 0 ? limits::reason(errno) : "the file was changed"));
    if (EVP_DigestUpdate(sum.get(), bytes.data(), static_cast<std::size_t>(n)) != 1)
      return no_digest(hash);
    at += static_cast<uint64_t>(n);
  }
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned digest_bytes = 0;
  if (EVP_DigestFinal_ex(sum.get(), reinterpret_cast<unsigned char*>(digest.data()),
                         &digest_bytes) != 1)
    return no_digest(hash);
  const std::string is = plugin::hexadecimal(std::span(digest).first(digest_bytes));
  if (is == one.digest) return {};
  return reject(
      fmt::format("predicate.resources[{}].digest", one.resource),
      fmt::format("expected {} of {}, found {}: it is not the file that was signed; "
                  "download it again",
                  shortened(one.digest), quoted_name(path_of(name).filename()), shortened(is)));
}

}  // namespace bitnet::signature
