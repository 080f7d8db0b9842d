#include "convert/convert.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "convert/plan.hpp"
#include "formats/fit.hpp"
#include "formats/ternary.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::convert {
namespace {

using gguf::quote;
using json = nlohmann::ordered_json;

constexpr uint64_t piece_bytes = uint64_t{4} << 20;

// Writes pieces to the file and reports progress.
class output {
 public:
  output(gguf::file_writer& to, uint64_t total, const options& how)
      : to_(to), total_(total), how_(how) {}

  result<void> write(std::span<const std::byte> bytes) {
    if (auto ok = to_.write(bytes); !ok) return ok;
    done_ += bytes.size();
    if (how_.progress && !how_.progress(done_, total_))
      return fail(BITNET_CANCELLED, "stopped; nothing was written");
    return {};
  }
  result<void> pad() { return to_.pad(); }

 private:
  gguf::file_writer& to_;
  uint64_t total_, done_ = 0;
  const options& how_;
};

// The unit of work of a thread: a ternary tensor, whose rows may be interleaved, or some rows of
// another one.
struct piece {
  const job* of = nullptr;
  uint64_t first = 0, rows = 0;  // for a copy: bytes
  bool is_last = false;          // of its tensor
};

std::vector<piece> pieces_of(const plan& p) {
  std::vector<piece> out;
  for (const auto& j : p.jobs) {
    const bool copied = j->ternary == nullptr && j->dense == nullptr;
    const uint64_t all = copied ? j->written.bytes : j->source.m;
    const uint64_t row_bytes = copied ? 1 : j->written.bytes / j->source.m;
    const uint64_t step =
        j->ternary != nullptr ? all : std::clamp<uint64_t>(piece_bytes / row_bytes, 1, all);
    for (uint64_t at = 0; at < all; at += step) {
      const uint64_t n = std::min(step, all - at);
      out.push_back({j.get(), at, n, at + n == all});
    }
  }
  return out;
}

// The bytes of a piece: the source's if copied, else `made`; and the check of its numbers.
struct product {
  std::vector<std::byte> made;
  std::span<const std::byte> bytes;
  formats::fit numbers;
};

void make_dense(const piece& one, product& out) {
  const job& j = *one.of;
  const uint64_t row_bytes = j.written.bytes / j.source.m;
  std::vector<float> numbers(j.source.k);
  out.made.assign(one.rows * row_bytes, std::byte{});
  for (uint64_t i = 0; i < one.rows; ++i) {
    const uint64_t row = one.first + i;
    read_row(j, row, 0, numbers);
    out.numbers.join(
        formats::write_and_check(*j.dense, numbers, row * j.source.k,
                                 std::span(out.made).subspan(i * row_bytes, row_bytes)));
  }
}

void make(const piece& one, product& out) {
  const job& j = *one.of;
  out.numbers = {};
  if (j.ternary == nullptr && j.dense == nullptr) {
    out.bytes = j.source.bytes.subspan(one.first, one.rows);
    out.numbers = formats::check_copied(j.source.type, j.source.bytes, one.first, out.bytes.size());
    return;
  }
  if (j.ternary == nullptr) {
    make_dense(one, out);
  } else {
    out.made.assign(j.written.bytes, std::byte{});
    j.ternary->write(j.weights, out.made);
  }
  out.bytes = out.made;
}

// Checks a tensor so far, or a whole one.
result<void> check_numbers(const job& j, const formats::fit& numbers, bool is_all) {
  if (!is_all && !numbers.first) return {};
  const bool dense = j.dense != nullptr;
  return formats::judge(numbers, dense ? j.dense->name : "", dense ? j.dense->most_error : 0,
                        j.source.k);
}

result<void> write_tensors(const model::loaded& from, const plan& p, gguf::file_writer& file,
                           const options& how, workers& by) {
  std::vector<gguf::planned_tensor> table;
  table.reserve(p.jobs.size());
  for (const auto& j : p.jobs) table.push_back(j->written);
  if (auto ok = file.write(gguf::header_of(p.metadata, table)); !ok) return ok;
  output to(file, p.bytes, how);
  const std::vector<piece> pieces = pieces_of(p);
  // Alternates: all threads convert, then one writes. Two pieces per thread even out their sizes.
  const size_t at_once = size_t{2} * by.width();
  std::vector<product> made(at_once);
  formats::fit numbers;  // of the tensor that is being written
  for (size_t at = 0; at < pieces.size(); at += at_once) {
    if (auto ok = from.file.check_size(); !ok) return ok;
    const size_t n = std::min(at_once, pieces.size() - at);
    by.each(n, [&](size_t i) { make(pieces[at + i], made[i]); });
    for (size_t i = 0; i < n; ++i) {
      const piece& one = pieces[at + i];
      numbers.join(made[i].numbers);
      if (auto fits = check_numbers(*one.of, numbers, one.is_last); !fits)
        return pass_on(std::move(fits),
                       fmt::format("{}: tensor {}", p.source, quote(one.of->written.name)));
      auto ok = to.write(made[i].bytes);
      if (ok && one.is_last) ok = to.pad();
      if (!ok) return ok;
      if (one.is_last) numbers = {};
    }
  }
  return {};
}

// ---- reading back -------------------------------------------------------------------------------

std::unexpected<failure> differs(const job& j, const std::string& how) {
  return fail(BITNET_INTERNAL, fmt::format("what was written of tensor {} reads back differently "
                                           "({}); nothing was kept. Please report this",
                                           quote(j.written.name), how));
}

float scale_of(const std::vector<float>& scales, uint64_t group, uint64_t element) {
  return scales[group == 0 ? 0 : element / group];
}

// Compares ternary values exactly, and scales as far as the form's 16 bits keep them.
result<void> verify_ternary(const job& j, const model::loaded& back, uint32_t index) {
  const model::weight& w = back.weights[index];
  std::array<uint8_t, formats::group> ours{}, theirs{};
  for (uint64_t r = 0; r < j.source.m; ++r)
    for (uint64_t c = 0; c < j.source.k; c += formats::group) {
      const uint64_t n = std::min(formats::group, j.source.k - c);
      j.weights.codes(r, c, std::span(ours).first(n));
      formats::read_codes(back.sources[index], back.readings[index], r, c,
                          std::span(theirs).first(n));
      if (!std::equal(ours.begin(), ours.begin() + static_cast<ptrdiff_t>(n), theirs.begin()))
        return differs(j, fmt::format("row {} from column {}", r, c));
      const uint64_t element = r * j.source.k + c;
      const float a = scale_of(j.weights.scales, j.weights.scale_group, element);
      const float b = scale_of(w.scales, w.scale_group, element);
      const bool all_zero =
          std::ranges::all_of(std::span(ours).first(n), [](uint8_t code) { return code == 1; });
      if (!all_zero && std::fabs(a - b) > std::fabs(a) * 0x1p-11F)
        return differs(j, fmt::format("scale of row {}", r));
    }
  return {};
}

// The relative error of a dense tensor, by root mean squares.
double dense_error(const job& j, const formats::source& theirs) {
  std::vector<float> a(j.source.k), b(j.source.k);
  double error = 0;
  double size = 0;
  for (uint64_t r = 0; r < j.source.m; ++r) {
    read_row(j, r, 0, a);
    formats::read_dense(theirs.type, theirs.bytes, r * theirs.k, b);
    for (uint64_t i = 0; i < a.size(); ++i) {
      const double d = double{a[i]} - double{b[i]};
      error += d * d;
      size += double{a[i]} * double{a[i]};
    }
  }
  return size == 0 ? std::sqrt(error) : std::sqrt(error / size);
}

// The error of a dense tensor, 0 for others; a failure if values differ that must be exact.
result<double> verify_job(const job& j, const model::loaded& back,
                          const std::map<std::string_view, uint32_t>& by_name) {
  const formats::source* theirs = nullptr;
  if (j.index == model::no_weight) {
    const auto named = [&](const auto& one) { return one.first == j.written.name; };
    const auto found = std::ranges::find_if(back.made_of, named);
    if (found != back.made_of.end()) theirs = &found->second;
  } else if (const auto at = by_name.find(j.written.name); at != by_name.end()) {
    theirs = &back.sources[at->second];
    if (j.ternary != nullptr) {
      if (auto ok = verify_ternary(j, back, at->second); !ok) return std::unexpected(ok.error());
      return 0;
    }
  }
  if (theirs == nullptr) return differs(j, "it is missing");
  if (j.dense == nullptr) {
    if (!std::ranges::equal(j.source.bytes, theirs->bytes.first(j.written.bytes)))
      return differs(j, "its bytes");
    return 0;
  }
  const double error = dense_error(j, *theirs);
  if (!(error <= j.dense->most_error)) return differs(j, fmt::format("error {:.2g}", error));
  return error;
}

// Opens the file as a user would: a file that this program rejects gets no name.
result<model::loaded> open_written(const gguf::file_writer& file, const options& how) {
  auto opened = gguf::file::open(file.readable_path());
  if (!opened) return std::unexpected(opened.error());
  model::load_options load = how.load;
  load.i2s_layout = 0;
  load.tl1_tiles = formats::tl1_tiles::generated;
  auto back = model::read(std::move(*opened), load);
  if (!back) return pass_on(std::move(back), "opening what was written, which is not kept");
  if (auto tokens = tokenizer::tokenizer::make(back->vocabulary); !tokens)
    return pass_on(std::move(tokens), "opening what was written, which is not kept");
  return back;
}

// Returns the largest error.
result<double> verify(const plan& p, const model::loaded& back, workers& by) {
  std::map<std::string_view, uint32_t> by_name;
  for (uint32_t i = 0; i < back.weights.size(); ++i) by_name.try_emplace(back.weights[i].name, i);
  std::vector<result<double>> errors(p.jobs.size());
  by.each(p.jobs.size(), [&](size_t i) { errors[i] = verify_job(*p.jobs[i], back, by_name); });
  double largest = 0;
  for (const auto& error : errors) {
    if (!error) return std::unexpected(error.error());
    largest = std::max(largest, *error);
  }
  return largest;
}

json report_of(const plan& p) {
  struct total {
    uint64_t count = 0, bytes = 0;
  };
  std::map<std::string, total> types;
  std::map<std::string, uint64_t> readings;
  for (const auto& j : p.jobs) {
    total& t = types[std::string(gguf::short_name(j->written.type))];
    ++t.count;
    t.bytes += j->written.bytes;
    if (j->ternary != nullptr) ++readings[j->reading.how];
  }
  json tensors = json::array();
  for (const auto& [type, t] : types)
    tensors.push_back({{"type", type}, {"count", t.count}, {"bytes", t.bytes}});
  json how = json::array();
  for (const auto& [as, count] : readings) how.push_back({{"as", as}, {"tensors", count}});
  json report = {{"tensors", std::move(tensors)}, {"readings", std::move(how)}};
  json kept = json::array();
  for (const auto& j : p.jobs)
    if (!j->kept.empty())
      kept.push_back({{"tensor", j->written.name},
                      {"type", std::string(gguf::short_name(j->written.type))},
                      {"why", j->kept}});
  if (!kept.empty()) report["kept"] = std::move(kept);
  if (!p.left_out.empty()) report["left_out"] = p.left_out;
  if (!p.left_out_members.empty()) report["left_out_members"] = p.left_out_members;
  return report;
}

// Whether `out` is one of the model's files.
bool is_read(const std::filesystem::path& in, const model::loaded& from,
             const std::filesystem::path& out) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::equivalent(in, out, ignored)) return true;
  if (std::ranges::any_of(from.file.mappings(),
                          [&](const gguf::mapping& m) { return m.is_file(out); }))
    return true;
  // For a checkpoint also its configuration and vocabulary, which may be links to elsewhere.
  for (fs::directory_iterator it(in, ignored), end; !ignored && it != end; it.increment(ignored)) {
    std::error_code other;
    if (fs::equivalent(it->path(), out, other)) return true;
  }
  return false;
}

}  // namespace

result<std::string> convert(const std::filesystem::path& in, const std::filesystem::path& out,
                            const options& how) {
  auto opened = model::open_file(in, how.load.judge);
  if (!opened) return std::unexpected(opened.error());
  auto from = model::read(std::move(*opened), how.load);
  if (!from) return pass_on(std::move(from), quote(in.native()));
  if (auto tokens = tokenizer::tokenizer::make(from->vocabulary); !tokens)
    return pass_on(std::move(tokens), quote(in.native()));
  if (is_read(in, *from, out))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} is the model that is read, or a part of it; name another file",
                            quote(out.native())));
  workers by(how.n_threads);
  auto p = make_plan(*from, how, by);
  if (auto ok = from->file.check_size(); !ok) return std::unexpected(ok.error());
  if (!p) return pass_on(std::move(p), quote(in.native()));
  p->source = quote(in.native());
  auto file = gguf::file_writer::create(out, how.overwrite);
  if (!file) return std::unexpected(file.error());
  const bool can_be_read = !file->readable_path().empty();
  if (how.verify && !can_be_read)
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} cannot be read back, as it is no regular file; leave verification out",
                    quote(out.native())));
  auto written = write_tensors(*from, *p, *file, how, by);
  // Check this first: if the source was cut short, that caused the other failure.
  if (auto ok = from->file.check_size(); !ok) return std::unexpected(ok.error());
  if (!written) return std::unexpected(written.error());
  json report = {{"file", out.native()}, {"bytes", file->written()}};
  report.update(report_of(*p));
  if (can_be_read) {
    const auto back = open_written(*file, how);
    if (!back) return std::unexpected(back.error());
    const auto error = how.verify ? verify(*p, *back, by) : 0.0;
    if (auto ok = from->file.check_size(); !ok) return std::unexpected(ok.error());
    if (!error) return std::unexpected(error.error());
    if (how.verify) report["verified"] = true;
    if (how.verify) report["dense_error"] = *error;
  }
  if (auto ok = file->finish(); !ok) return std::unexpected(ok.error());
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace bitnet::convert
