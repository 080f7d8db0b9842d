// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Tier 0: a whole backend for an author of kernels on host memory.
//
// The author fills a `definition` (kernel.hpp) with primitive kernels and, optionally, fused ones;
// the interpreter provides every slot of the table: weights, buffers, KV pool, programs, queue.
// Steps run on the host's threads inside queue_submit, so no work is pending afterwards.
//
//   bitnet_status BITNET_BACKEND_ENTRY(host, request, out, err) {
//     return bitnet::sdk::open_interpreter(host, request, out, err, describe);
//   }
//   void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) { ... }
//
// Threads  as the contract says; in addition, steps of one program wait for each other.
// Errors   everything from the host is checked before use: a malformed graph, tensor or step is
//          BITNET_INVALID_ARGUMENT, never undefined behaviour.

#include <algorithm>
#include <charconv>
#include <memory>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/interfaces.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/interpreter/objects.hpp"
#include "bitnet/sdk/slots.hpp"
#include "bitnet/sdk/table.hpp"

namespace bitnet::sdk {

using describe_backend = void (*)(const bitnet_open_request& request, definition& out);

namespace interpreter {

// Removes the kernels that the host found wrong (its parameter "disable"), so that the next row
// that fits runs instead.
inline void remove_disabled(const bitnet_open_request& request, definition& d) {
  for (uint32_t i = 0; i < request.n_params; ++i) {
    if (to_view(request.params[i].key) != "disable") continue;
    const std::string_view list = to_view(request.params[i].value);
    for (size_t begin = 0; begin < list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string_view id = list.substr(begin, end - begin);
      const auto named = [id](const auto& row) { return std::string_view(row.id) == id; };
      std::erase_if(d.primitives, named);
      std::erase_if(d.composites, named);
      std::erase_if(d.others, named);
      begin = end + 1;
    }
  }
}

// Without this check, a packing that lacks a part would lead to a crash, or to two packed forms
// that cannot be distinguished.
inline void reject_half_packings(definition& d) {
  const auto check = [&d](const auto& row) {
    const packing& p = row.packing;
    const bool whole = p.pack && !p.layout_id.empty() &&
                       p.layout_id.size() < sizeof bitnet_weight_plan{}.layout_id;
    if (p.bytes && !whole)
      d.why_unavailable =
          "the packing of kernel " + row.id +
          " needs a function pack and a layout_id of 1 to 63 characters; its author "
          "has to add what is missing";
  };
  for (const primitive& p : d.primitives) check(p);
  for (const composite& c : d.composites) check(c);
}

inline void read_poll(const bitnet_open_request& request, definition& d) {
  for (uint32_t i = 0; i < request.n_params; ++i) {
    if (to_view(request.params[i].key) != "poll") continue;
    const std::string_view text = to_view(request.params[i].value);
    uint32_t poll = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), poll);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size()) d.poll = poll;
  }
}

}  // namespace interpreter

// Serves the entry call for the backend that `describe` fills in, if the host speaks one of these
// minors. `describe` finds the agreed minor in definition::abi_minor.
inline bitnet_status open_interpreter(const bitnet_host_v0* services,
                                      const bitnet_open_request* request, bitnet_backend_v0* out,
                                      bitnet_error* err, describe_backend describe,
                                      minors spoken = {}) noexcept {
  return guarded(err, "entry", [&](const reporter& report) {
    auto opened = std::make_unique<interpreter::backend>(services);
    bitnet_backend_v0 table = slots<interpreter::objects>::table();
    table.query_interface = interpreter::query_interface;
    table.self = reinterpret_cast<bitnet_backend*>(opened.get());
    if (bitnet_status s = fill_table(services, request, out, table, spoken, report); failed(s))
      return s;
    opened->author.abi_minor = out->abi_minor;
    interpreter::read_poll(*request, opened->author);
    describe(*request, opened->author);
    interpreter::remove_disabled(*request, opened->author);
    if (!opened->author.status && BITNET_HAS_FIELD(out, bitnet_backend_v0, device_status))
      out->device_status = nullptr;
    interpreter::reject_half_packings(opened->author);
    [[maybe_unused]] const auto* kept = opened.release();  // close() takes it back
    return BITNET_OK;
  });
}

}  // namespace bitnet::sdk
