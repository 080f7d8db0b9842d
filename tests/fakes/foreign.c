/* Code that nobody judged: ends the process in which it runs, so that its probe tells. */
#include <unistd.h>

__attribute__((constructor)) static void run(void) {
  _exit(0);
}
int bitnet_fake_absent(void);
int bitnet_fake_absent(void) {
  return 0;
}
