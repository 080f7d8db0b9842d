#include "receipt/own_key.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <utility>

#include "files/new_file.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/ed25519.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::receipt {
namespace {

// The caller handles EEXIST.
std::expected<void, files::problem> write_new(int folder, const std::filesystem::path& file,
                                              const std::string& text, mode_t mode) {
  files::write_options how;
  how.overwrite = false;
  how.mode = mode;
  how.regular_only = true;
  auto out = files::new_file::create_in(folder, file.filename().string(), how);
  if (!out) return std::unexpected(std::move(out.error()));
  if (auto ok = out->write(text); !ok) return ok;
  return out->finish();
}

result<void> make_key(const std::filesystem::path& folder) {
  const auto made = plugin::make_key_pair();
  if (!made) return std::unexpected(made.error().as_failure());
  const auto at = plugin::open_trusted_directory(folder, plugin::missing_directory::make);
  if (!at) return std::unexpected(of_key(at.error()));
  const key_files files = keys_in(folder);
  const auto cannot = [](const std::filesystem::path& file, const files::problem& why) {
    return fail(BITNET_IO,
                fmt::format("the key for receipts, {}, cannot be made: {}; name one with "
                            "`openssl genpkey -algorithm ed25519`",
                            plugin::printable(file.string(), 400), why.text));
  };
  auto ok = write_new(at->get(), files.secret, made->private_pem, 0600);
  if (!ok && ok.error().error == EEXIST) return {};  // another process was first
  if (!ok) return cannot(files.secret, ok.error());
  ok = write_new(at->get(), files.open, made->public_pem, 0644);
  if (!ok && ok.error().error != EEXIST) return cannot(files.open, ok.error());
  return {};
}

}  // namespace

failure of_key(plugin::defect d) {
  constexpr std::string_view advice =
      "name a file with an ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` writes it";
  return plugin::failure_of_named(std::move(d), advice, BITNET_REJECTED);
}

key_files keys_in(const std::filesystem::path& folder) {
  return {folder / "receipt-key.pem", folder / "receipt-key.pub.pem"};
}

result<std::string> own_key(const std::filesystem::path& folder) {
  const key_files files = keys_in(folder);
  auto pem = plugin::read_private_key(files.secret);
  if (!pem && pem.error().code == plugin::code::trust_missing) {
    if (auto ok = make_key(folder); !ok) return std::unexpected(std::move(ok.error()));
    pem = plugin::read_private_key(files.secret);
  }
  if (!pem) return std::unexpected(of_key(pem.error()));
  return *std::move(pem);
}

result<std::string> public_key_in(const std::filesystem::path& file) {
  const auto opened = plugin::open_any(file);
  if (!opened) return std::unexpected(of_key(opened.error()));
  const auto pem = plugin::read_all(*opened, plugin::max_key_bytes);
  if (!pem) return std::unexpected(of_key(pem.error()));
  auto key = plugin::read_public_key(*pem);
  if (!key) key = plugin::public_key_of(*pem);
  if (key) return *std::move(key);
  return fail(BITNET_REJECTED,
              fmt::format("{} holds no ed25519 key in PEM", plugin::printable(file.string(), 400)));
}

}  // namespace bitnet::receipt
