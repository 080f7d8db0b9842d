/* Code that was not judged: it ends the process in which it runs, so that the probe shows it. */
#include <unistd.h>

__attribute__((constructor)) static void run(void) {
  _exit(0);
}
int bitnet_fake_absent(void);
int bitnet_fake_absent(void) {
  return 0;
}
