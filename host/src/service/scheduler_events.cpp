#include "service/scheduler_events.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "files/descriptor.hpp"

namespace bitnet::host {
namespace asio = boost::asio;

struct scheduler_events::contents : std::enable_shared_from_this<contents> {
  contents(asio::io_context& io, bitnet_scheduler* of, int epoll)
      : scheduler(of), watch(io, epoll) {}

  void wait();
  void take_all();
  void take_of(bitnet_request* request);

  struct open_request {
    request_handle handle;
    std::shared_ptr<event_reader> reader;
  };

  bitnet_scheduler* scheduler;
  // An epoll that watches the scheduler's descriptor edge-triggered. Asio would report the
  // descriptor as readable again and again while a request leaves its events unread.
  asio::posix::stream_descriptor watch;
  std::unordered_map<const bitnet_request*, open_request> open;
};

void scheduler_events::contents::wait() {
  watch.async_wait(asio::posix::stream_descriptor::wait_read,
                   [weak = weak_from_this()](const boost::system::error_code& ec) {
                     const auto self = weak.lock();
                     if (!self || ec) return;
                     epoll_event edge{};
                     (void)::epoll_wait(self->watch.native_handle(), &edge, 1, 0);
                     self->take_all();
                     self->wait();
                   });
}

// bitnet_scheduler_wait names requests in turn, including those that leave their events. When one
// comes again, all have been named.
void scheduler_events::contents::take_all() {
  std::unordered_set<const bitnet_request*> seen;
  library_error err;
  for (bitnet_request* ready = nullptr;
       bitnet_scheduler_wait(scheduler, 0, &ready, &err) == BITNET_OK && seen.insert(ready).second;)
    take_of(ready);
}

void scheduler_events::contents::take_of(bitnet_request* request) {
  const auto at = open.find(request);
  if (at == open.end()) return;
  const std::shared_ptr<event_reader> reader = at->second.reader;
  library_error err;
  while (reader->has_room()) {
    bitnet_event e{};
    e.struct_size = sizeof e;
    const bitnet_status status = bitnet_request_next(request, 0, &e, &err);
    if (status == BITNET_OK) {
      reader->take(e);
      continue;
    }
    if (status == BITNET_TIMEOUT) return;
    auto own = open.extract(request);
    return reader->ended(own.empty() ? request_handle() : std::move(own.mapped().handle));
  }
}

result<std::unique_ptr<scheduler_events>> scheduler_events::open(asio::io_context& io,
                                                                 bitnet_scheduler* scheduler) {
  files::descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event edge{};
  edge.events = EPOLLIN | EPOLLET;
  if (!epoll ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bitnet_scheduler_descriptor(scheduler), &edge) != 0)
    return fail(exit_code::failure,
                fmt::format("the scheduler's events cannot be watched: {}", std::strerror(errno)));
  auto made = std::make_shared<contents>(io, scheduler, epoll.release());
  made->wait();
  return std::unique_ptr<scheduler_events>(new scheduler_events(std::move(made)));
}

scheduler_events::scheduler_events(std::shared_ptr<contents> c) : contents_(std::move(c)) {}
scheduler_events::~scheduler_events() = default;

void scheduler_events::add(request_handle request, std::shared_ptr<event_reader> reader) {
  bitnet_request* const key = request.get();
  contents_->open.emplace(key, contents::open_request{std::move(request), std::move(reader)});
  contents_->take_of(key);  // takes events that came before it was registered
}

void scheduler_events::cancel(const bitnet_request* request) {
  const auto at = contents_->open.find(request);
  if (at != contents_->open.end()) bitnet_request_cancel(at->second.handle.get());
}

void scheduler_events::resume(const bitnet_request* request) {
  const auto at = contents_->open.find(request);
  if (at != contents_->open.end()) contents_->take_of(at->second.handle.get());
}

std::size_t scheduler_events::n_open() const {
  return contents_->open.size();
}

}  // namespace bitnet::host
