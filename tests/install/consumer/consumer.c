#include <bitnet/bitnet.h>
#include <stdio.h>

int main(void) {
  puts(bitnet_version());
  return 0;
}
