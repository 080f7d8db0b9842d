#include "api/model_signature.hpp"

#include <fmt/core.h>

#include <string_view>

#include "base/wording.hpp"

namespace bitnet::api {
namespace {

std::string_view given_path(const char* path) {
  return path == nullptr ? std::string_view() : std::string_view(path);
}

}  // namespace

result<std::unique_ptr<signature::model_judge>> judge_of(const bitnet_model_options& options,
                                                         const char* path) {
  signature::request asked{.model = path,
                           .signature = given_path(options.signature),
                           .key = given_path(options.signature_key),
                           .ca = given_path(options.signature_ca)};
  if (asked.key.empty() && asked.ca.empty()) {
    if (asked.signature.empty()) return nullptr;
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} is given, but not whose it must be; give {} or {} too",
                    say(word::signature), say(word::signature_key), say(word::signature_ca)));
  }
  if (options.progress != nullptr)
    asked.goes_on = [&options](uint64_t total) {
      return options.progress(options.progress_user, 0, total) == 0;
    };
  return signature::model_judge::make(asked);
}

std::string signature_words(const bitnet_model_options& options) {
  return fmt::format("{} {} {}", given_path(options.signature_key),
                     given_path(options.signature_ca), given_path(options.signature));
}

}  // namespace bitnet::api
