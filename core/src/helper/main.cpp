// bitnet-backend-probe: looks at one plugin so that the program itself need not run it. Started by
// libbitnet only, which hands it a socket.

#include "probe/child.hpp"

int main() {
  return bitnet::probe::serve(bitnet::probe::task_fd);
}
