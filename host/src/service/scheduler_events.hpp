#pragma once
// Reads the events of all requests at a scheduler in an Asio loop, with one descriptor and no
// thread.
//
// Threads: the one that runs `io`, unless bitnet.h allows others.

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>

#include "basic/result.hpp"
#include "library/handles.hpp"

namespace bitnet::host {

// Receives the events of one request.
class event_reader {
 public:
  virtual ~event_reader() = default;
  // False: the events stay at the scheduler, which stops only this request when its queue is full.
  // Call scheduler_events::resume() when there is room again.
  [[nodiscard]] virtual bool has_room() const = 0;
  virtual void take(const bitnet_event& e) = 0;
  // Every choice has ended and no event follows. The reader owns `request` from now on and is not
  // called again.
  virtual void ended(request_handle request) = 0;
};

class scheduler_events {
 public:
  // `scheduler` outlives it. Exit code 1 if no descriptor is available.
  [[nodiscard]] static result<std::unique_ptr<scheduler_events>> open(boost::asio::io_context& io,
                                                                      bitnet_scheduler* scheduler);
  ~scheduler_events();
  scheduler_events(const scheduler_events&) = delete;
  scheduler_events& operator=(const scheduler_events&) = delete;

  void add(request_handle request, std::shared_ptr<event_reader> reader);
  // The request's choices end within one step; the reader still receives their ends.
  void cancel(const bitnet_request* request);
  // Takes the events that wait since has_room() was false.
  void resume(const bitnet_request* request);
  [[nodiscard]] std::size_t n_open() const;

 private:
  struct contents;
  explicit scheduler_events(std::shared_ptr<contents> c);
  std::shared_ptr<contents> contents_;
};

}  // namespace bitnet::host
