/* A library that is linked against and then cannot be found: its folder is on no search path. */
int bitnet_fake_absent(void);
int bitnet_fake_absent(void) {
  return 0;
}
