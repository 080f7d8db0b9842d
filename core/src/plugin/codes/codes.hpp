#pragma once
// Why a backend is rejected: stable codes for scripts and documentation, one row each.
//
// Letters: M manifest, T trust, I inspection, A ABI, P probe, S selection. A code is never reused.
// Its hint is advice for the user, shown unless the reporting code has a better one; {id} is a word
// of base/wording.hpp.

#include <fmt/core.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

#define BITNET_CODES(X)                                                                            \
  X(ok, "BN-OK", "")                                                                               \
  X(manifest_name, "BN-M-NAME",                                                                    \
    "name the file NN-<name>.yaml after the backend that it describes")                            \
  X(manifest_unreadable, "BN-M-READ", "make the manifest readable or remove it")                   \
  X(manifest_size, "BN-M-SIZE", "a manifest is a page of text: reinstall the backend's package")   \
  X(manifest_syntax, "BN-M-SYNTAX",                                                                \
    "write plain YAML: no anchors, aliases, tags or repeated keys")                                \
  X(manifest_schema, "BN-M-SCHEMA", "upgrade bitnet, or install an older backend")                 \
  X(manifest_field, "BN-M-FIELD", "correct the field that the message names")                      \
  X(manifest_outside, "BN-M-OUTSIDE",                                                              \
    "name a file in the plugin directory, or write an absolute path")                              \
  X(manifest_disabled, "BN-M-DISABLED", "remove the empty file to enable the backend")             \
  X(manifest_duplicate, "BN-M-DUPLICATE", "keep one manifest for each backend name")               \
  X(trust_missing, "BN-T-MISSING", "install the backend's package again")                          \
  X(trust_kind, "BN-T-KIND", "only a regular file can be a plugin or a manifest")                  \
  X(trust_owner, "BN-T-OWNER", "give the file to root")                                            \
  X(trust_mode, "BN-T-MODE", "take the write permission away from others")                         \
  X(trust_changed, "BN-T-CHANGED", "run the command again")                                        \
  X(trust_hash, "BN-T-HASH",                                                                       \
    "reinstall the backend's package, or correct `sha256` in the manifest")                        \
  X(trust_not_allowed, "BN-T-NOT-ALLOWED", "add it to {allowed_backends}")                         \
  X(trust_signature, "BN-T-SIGNATURE", "{sign_file}, or install a signed package")                 \
  X(trust_key, "BN-T-KEY",                                                                         \
    "write an ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` does")                   \
  X(inspect_not_elf, "BN-I-FORMAT", "name the plugin's shared object in `library`")                \
  X(inspect_truncated, "BN-I-TRUNCATED", "copy the file again or reinstall the backend's package") \
  X(inspect_machine, "BN-I-MACHINE", "install the backend's package for this machine")             \
  X(inspect_no_note, "BN-I-NO-NOTE",                                                               \
    "build the plugin with BITNET_BACKEND_NOTE from bitnet/abi/note.h")                            \
  X(inspect_note, "BN-I-NOTE", "build the plugin again with the current bitnet/abi/note.h")        \
  X(inspect_name, "BN-I-NAME", "let `library` name the plugin that the manifest describes")        \
  X(inspect_no_entry, "BN-I-NO-ENTRY", "build the plugin with bitnet_add_backend")                 \
  X(inspect_exports, "BN-I-EXPORTS", "link the plugin with the version script bitnet-backend.map") \
  X(inspect_foreign, "BN-I-FOREIGN",                                                               \
    "link the plugin with plain libraries: no path as a name, no filter, no audit library")        \
  X(inspect_dependency, "BN-I-DEPENDENCY", "install the missing libraries")                        \
  X(inspect_version, "BN-I-VERSION",                                                               \
    "upgrade the library, or build the plugin on an older system")                                 \
  X(inspect_run_path, "BN-I-RUN-PATH",                                                             \
    "link the plugin without a run path, or with absolute folders of root's")                      \
  X(inspect_static_tls, "BN-I-STATIC-TLS", "build the plugin without -ftls-model=initial-exec")    \
  X(inspect_text_relocation, "BN-I-TEXTREL",                                                       \
    "build the plugin with -fPIC and link it with -z text")                                        \
  X(inspect_exec_stack, "BN-I-EXEC-STACK", "link the plugin with -z noexecstack")                  \
  X(inspect_hardening, "BN-I-HARDENING", "link the plugin with -z now -z relro")                   \
  X(inspect_pinned, "BN-I-PINNED",                                                                 \
    "take 'unloadable' out of the note's flags, or what pins it out of the plugin")                \
  X(abi_major, "BN-A-MAJOR", "install a bitnet and a backend that speak the same ABI major")       \
  X(abi_minor, "BN-A-MINOR", "upgrade bitnet or install an older backend")                         \
  X(abi_load, "BN-A-LOAD", "reinstall the backend's package")                                      \
  X(abi_entry, "BN-A-ENTRY", "report it to the backend's author")                                  \
  X(abi_table, "BN-A-TABLE", "report it to the backend's author")                                  \
  X(abi_slot, "BN-A-SLOT", "report it to the backend's author")                                    \
  X(abi_overrun, "BN-A-OVERRUN", "report it to the backend's author and remove the backend")       \
  X(abi_identity, "BN-A-IDENTITY", "reinstall the backend's package")                              \
  X(probe_unavailable, "BN-P-UNAVAILABLE", "follow the reason that the backend gives")             \
  X(probe_no_device, "BN-P-NO-DEVICE",                                                             \
    "check that the device is there, or ask for another backend")                                  \
  X(probe_failed, "BN-P-FAILED", "report it to the backend's author")                              \
  X(probe_answer, "BN-P-ANSWER", "report it to the backend's author")                              \
  X(probe_crash, "BN-P-CRASH", "report it to the backend's author")                                \
  X(probe_exit, "BN-P-EXIT", "report it to the backend's author")                                  \
  X(probe_throws, "BN-P-THROWS", "report it to the backend's author")                              \
  X(probe_timeout, "BN-P-TIMEOUT",                                                                 \
    "look at the device's driver, or raise probe.timeout_ms in the manifest")                      \
  X(probe_output, "BN-P-OUTPUT", "report it to the backend's author")                              \
  X(probe_leftover, "BN-P-LEFTOVER", "report it to the backend's author")                          \
  X(probe_hygiene, "BN-P-HYGIENE", "report it to the backend's author")                            \
  X(probe_message, "BN-P-MESSAGE", "reinstall the backend's package and bitnet")                   \
  X(probe_helper, "BN-P-HELPER", "reinstall bitnet: its helper bitnet-backend-probe must run")     \
  X(probe_pending, "BN-P-PENDING", "{wait_for_probe}")                                             \
  X(probe_mismatch, "BN-P-MISMATCH", "{ask_again}")                                                \
  X(probe_self_test, "BN-P-SELF-TEST", "report it to the backend's author and remove the backend") \
  X(probe_quarantine, "BN-P-QUARANTINE", "upgrade the backend, or {ask_again}")                    \
  X(select_not_asked, "BN-S-NOT-ASKED", "{request_it}")                                            \
  X(select_not_probed, "BN-S-NOT-PROBED", "{probe_all}, or {request_it}")                          \
  X(select_outranked, "BN-S-OUTRANKED", "{request_it}")                                            \
  X(select_same, "BN-S-SAME", "{request_it}")                                                      \
  X(select_no_class, "BN-S-CLASS", "ask for the backend by its name")                              \
  X(select_index, "BN-S-INDEX", "use a smaller index")                                             \
  X(select_filtered, "BN-S-FILTERED", "change BITNET_BACKENDS or BITNET_BACKENDS_DISABLE")         \
  X(select_conflict, "BN-S-CONFLICT", "use the two backends in different processes")               \
  X(select_requires, "BN-S-REQUIRES",                                                              \
    "give the machine what is missing, or ask for another backend")

namespace bitnet::plugin {

#define BITNET_CODE_ENUM(id, text, hint) id,
enum class code : uint8_t { BITNET_CODES(BITNET_CODE_ENUM) };
#undef BITNET_CODE_ENUM

[[nodiscard]] std::string_view code_text(code c);  // "BN-T-OWNER"
[[nodiscard]] std::string code_hint(code c);
[[nodiscard]] std::optional<code> code_of(std::string_view text);  // of "BN-T-OWNER"

// A failure with a code. Outside the loader it becomes a plain failure.
struct defect {
  plugin::code code = code::ok;
  bitnet_status status = BITNET_REJECTED;
  std::string reason;
  std::string hint;  // more precise than the code's hint; "": use that
  origin from{};     // the error of the plugin's call

  [[nodiscard]] std::string advice() const { return hint.empty() ? code_hint(code) : hint; }
  [[nodiscard]] failure as_failure() const {
    return {status, fmt::format("{}; {}", reason, advice()), from};
  }
};

template <class T>
using checked = std::expected<T, defect>;

// return reject(code::trust_owner, "...", "chown root ...");
[[nodiscard]] inline std::unexpected<defect> reject(code c, std::string reason,
                                                    std::string hint = "") {
  return std::unexpected(defect{c, BITNET_REJECTED, std::move(reason), std::move(hint)});
}

// For a file that a user named and that may be no backend. `advice`: what to name if it is missing
// or no regular file; `otherwise`: the status in all cases but a missing file.
[[nodiscard]] inline failure failure_of_named(defect d, std::string_view advice,
                                              bitnet_status otherwise) {
  if (d.hint.empty() && (d.code == code::trust_missing || d.code == code::trust_kind))
    d.hint = advice;
  d.status = d.code == code::trust_missing ? BITNET_NOT_FOUND : otherwise;
  return d.as_failure();
}

}  // namespace bitnet::plugin
