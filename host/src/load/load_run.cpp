#include "load/load_run.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "client/exchange.hpp"
#include "load/stream_events.hpp"
#include "text/json_members.hpp"
#include "text/printable.hpp"

namespace bitnet::host::load {
namespace {

using nlohmann::json;

constexpr std::size_t longest_answer = 1 << 20;  // bytes of an answer that is read whole
constexpr std::size_t longest_shown = 200;       // part of an answer in a message
constexpr auto agent = "bitnet-bench";

// Common words, each a token or two of most vocabularies.
constexpr auto words = std::to_array<const char*>(
    {"time",  "year",  "people", "way",    "day",   "man",    "thing",  "woman",
     "life",  "child", "world",  "school", "state", "family", "hand",   "part",
     "place", "case",  "week",   "work",   "water", "room",   "mother", "area",
     "money", "story", "month",  "lot",    "right", "study",  "book",   "eye"});

uint64_t clock_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::string prompt_of(const load_setup& setup, uint32_t number) {
  std::mt19937 shared(setup.seed);
  std::mt19937 own(setup.seed + 1 + number);
  std::string out;
  for (uint32_t i = 0; i < setup.n_prompt; ++i) {
    std::mt19937& from = i < setup.n_shared ? shared : own;
    out += (out.empty() ? "" : " ") + std::string(words[from() % words.size()]);
  }
  return out;
}

// Reads the body of an answer: events of a stream, or the text of an error.
class answer_reader {
 public:
  explicit answer_reader(request_times& to) : to_(to) {}

  bool take(std::string_view bytes) {
    const uint64_t now = clock_ns();
    begin_.append(bytes.substr(0, longest_shown - std::min(begin_.size(), longest_shown)));
    auto events = events_.take(bytes);
    if (!events) {
      to_.failure = events.error();
      return false;
    }
    for (const std::string& data : *events) {
      const stream_chunk chunk = read_chunk(data);
      if (!chunk.error.empty()) {
        to_.failure = chunk.error;
        return false;
      }
      if (chunk.has_text) to_.pieces_ns.push_back(now);
      if (chunk.n_generated != 0) to_.n_generated = chunk.n_generated;
      if (chunk.n_prompt != 0) to_.n_prompt = chunk.n_prompt;
    }
    return true;
  }
  [[nodiscard]] std::string begin() const { return text::printable(begin_, longest_shown); }

 private:
  request_times& to_;
  stream_events events_;
  std::string begin_;
};

request_times run_request(const load_setup& setup, uint32_t number,
                          const std::function<bool()>& is_ended) {
  const client::sent_request what{
      "POST", setup.to.path(setup.chats ? "/v1/chat/completions" : "/v1/completions"),
      request_body(setup, number), setup.key, agent};
  request_times out;
  answer_reader reader(out);
  out.begun_ns = clock_ns();
  const auto status = client::exchange(setup.to.url, what, {.is_ended = is_ended},
                                       [&](std::string_view bytes) { return reader.take(bytes); });
  out.ended_ns = clock_ns();
  if (!status)
    out.failure = fmt::format("{}: {}", setup.to.url.authority(), status.error());
  else if (*status != 200)
    out.failure = fmt::format("status {}: {}", *status, reader.begin());
  else if (out.failure.empty() && out.pieces_ns.empty())
    out.failure = "an answer without text";
  return out;
}

double ms_between(uint64_t begin, uint64_t end) {
  return static_cast<double>(end - begin) / 1e6;
}

}  // namespace

std::optional<double> request_times::first_ms() const {
  if (pieces_ns.empty()) return std::nullopt;
  return ms_between(begun_ns, pieces_ns.front());
}

double request_times::all_ms() const {
  return ms_between(begun_ns, ended_ns);
}

uint64_t request_times::tokens() const {
  return n_generated != 0 ? n_generated : pieces_ns.size();
}

std::optional<double> request_times::token_ms() const {
  if (pieces_ns.size() < 2 || tokens() < 2) return std::nullopt;
  return ms_between(pieces_ns.front(), pieces_ns.back()) / static_cast<double>(tokens() - 1);
}

std::string request_body(const load_setup& setup, uint32_t number) {
  json body = {{"model", setup.model},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"max_tokens", setup.n_gen},
               {"temperature", 0}};
  if (setup.ignores_eos) body["ignore_eos"] = true;
  const std::string prompt = prompt_of(setup, number);
  if (setup.chats)
    body["messages"] = json::array({{{"role", "user"}, {"content", prompt}}});
  else
    body["prompt"] = prompt;
  return body.dump();
}

load_outcome run_load(const load_setup& setup, const std::function<bool()>& is_ended) {
  load_outcome out;
  out.requests.resize(setup.n_requests);
  std::atomic<uint32_t> next = 0;
  const auto stream = [&] {
    for (uint32_t i = next++; i < setup.n_requests; i = next++) {
      if (is_ended())
        out.requests[i].failure = "interrupted";
      else
        out.requests[i] = run_request(setup, i, is_ended);
    }
  };
  const uint64_t begin = clock_ns();
  {
    std::vector<std::jthread> streams;
    streams.reserve(setup.n_streams);
    for (uint32_t i = 0; i < setup.n_streams; ++i) streams.emplace_back(stream);
  }
  out.wall_ns = clock_ns() - begin;
  return out;
}

std::expected<std::string, std::string> first_model(const server_address& at,
                                                    const std::string& key,
                                                    const std::function<bool()>& is_ended) {
  std::string body;
  const auto status =
      client::exchange(at.url, {"GET", at.path("/v1/models"), "", key, agent},
                       {.without_a_byte = std::chrono::seconds(30), .is_ended = is_ended},
                       [&](std::string_view bytes) {
                         body += bytes;
                         return body.size() <= longest_answer;
                       });
  if (!status) return std::unexpected(fmt::format("{}: {}", at.url.authority(), status.error()));
  const json listed = text::json_of(body);
  const json& models = text::at(listed, "data");
  std::string id = models.is_array() && !models.empty() ? text::text_at(models.front(), "id") : "";
  if (*status == 200 && !id.empty()) return id;
  return std::unexpected(fmt::format("GET {} names no model (status {}: {}); name it with -m",
                                     at.path("/v1/models"), *status,
                                     text::printable(body, longest_shown)));
}

}  // namespace bitnet::host::load
