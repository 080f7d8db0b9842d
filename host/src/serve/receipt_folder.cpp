#include "serve/receipt_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "files/new_file.hpp"
#include "receipts/receipts.hpp"

namespace bitnet::host {
namespace {

constexpr std::size_t most_waiting = 256;

std::string name_of(const receipt_folder::ended_request& one) {
  return one.prompt == 0 ? one.id + ".json" : fmt::format("{}-{}.json", one.id, one.prompt);
}

}  // namespace

result<std::unique_ptr<receipt_folder>> receipt_folder::open(const invocation& in,
                                                             boost::asio::io_context& io) {
  const std::string& folder = in.set.text("receipts-dir");
  if (folder.empty()) return nullptr;
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none))
    return fail(exit_code::usage,
                fmt::format("--receipts-dir: {} is no folder; make it, or name another", folder));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fail(exit_code::usage, fmt::format("--receipts-dir: no file can be made in {}: {}",
                                              folder, std::strerror(errno)));
  return std::make_unique<receipt_folder>(
      in, io, folder, static_cast<std::size_t>(in.set.integer("receipts-kept")));
}

receipt_folder::receipt_folder(const invocation& in, boost::asio::io_context& io,
                               std::string folder, std::size_t most_files)
    : in_(in),
      io_(io),
      folder_(std::move(folder)),
      most_files_(most_files),
      worker_(most_waiting) {}

// The request is destroyed in the loop, since it may be the last owner of the loop's objects.
void receipt_folder::add(ended_request one) {
  auto held = std::make_shared<ended_request>(std::move(one));
  const bool taken = worker_.post([this, held]() mutable {
    write(*held);
    boost::asio::post(io_, [held = std::move(held)] {});
  });
  if (!taken) ++n_dropped_;
}

void receipt_folder::write(const ended_request& one) {
  const auto lines = lines_of(one);
  if (!lines) return report(lines.error().message);
  std::string file = (std::filesystem::path(folder_) / name_of(one)).string();
  if (const auto done = files::write_file(file, *lines); !done)
    return report(fmt::format("cannot write {}: {}", file, done.error().text));
  trouble_.clear();
  ++n_written_;
  files_.push_back(std::move(file));
  forget_oldest();
}

result<std::string> receipt_folder::lines_of(const ended_request& one) const {
  std::string out;
  for (uint32_t i = 0; i < one.n_choices; ++i) {
    auto line = request_receipt(in_, runtime_, one.request.get(), i,
                                {{"command", "serve"}, {"id", one.id}, {"model", one.model}});
    if (!line) return line;
    out += *line;
  }
  return out;
}

// Only files of this run are removed; others stay.
void receipt_folder::forget_oldest() {
  for (; files_.size() > most_files_; files_.pop_front()) {
    std::error_code ignored;  // it may be gone already
    std::filesystem::remove(files_.front(), ignored);
  }
}

// Warns unless the last dropped receipt had the same reason.
void receipt_folder::report(const std::string& why) {
  ++n_dropped_;
  if (std::exchange(trouble_, why) != why)
    in_.out.warning(fmt::format("a receipt is dropped: {}", why));
}

}  // namespace bitnet::host
