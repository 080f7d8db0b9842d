/* What a plugin must never do. fake_backend.c does it where FAKE_AT_<PLACE> says so. */
#ifndef BITNET_TESTS_MISBEHAVIOUR_H
#define BITNET_TESTS_MISBEHAVIOUR_H

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

static void segfault(void) {
  fprintf(stderr, "about to crash\n");
  *(volatile int*)8 = 1;
}
static void hang(void) {
  for (;;) pause();
}
static void hang_and_ignore_sigterm(void) {
  signal(SIGTERM, SIG_IGN);
  hang();
}
/* As C++ would, without its library. Of static storage: the catcher reads it later. */
static void throw_something(void) {
  static struct _Unwind_Exception exception;
  memset(&exception, 0, sizeof exception);
  memcpy(&exception.exception_class, "BITNFAKE", 8);
  _Unwind_RaiseException(&exception);
}
static void leave_process(void) {
  if (fork() == 0) hang();
}
static void close_descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) close(fd);
}
static void print(long bytes) {
  for (long i = 0; i < bytes; i += 64) printf("%063ld\n", i);
  fflush(stdout);
}
static void* sleeper(void* nothing) {
  hang();
  return nothing;
}
static void leave_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleeper, NULL);
  pthread_detach(thread);
}
static void leak(long bytes) {
  volatile char* memory = malloc((size_t)bytes);
  for (long i = 0; i < bytes; i += 4096) memory[i] = 1;
}
static void leave_folder(void) {
  if (chdir("/usr") != 0) abort();  // probes begin in /
}
static void leave_descriptor(void) {
  if (open("/dev/null", O_RDONLY) < 0) abort();
}
static void block_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}
static void lower_limit(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 100;
  setrlimit(RLIMIT_NOFILE, &limit);
}
static void flush_to_zero(void) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* FTZ and DAZ */
#elif defined(__aarch64__)
  unsigned long fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1ul << 24));
#endif
}
/* A process outside our process groups, whose parent is gone; it notes its number in the folder
 * of drivers, and ends by itself before a test machine tires of it. */
static void leave_daemon(void) {
  const char* folder = getenv("XDG_CACHE_HOME");
  if (fork() != 0) {
    usleep(300000); /* the daemon begins meanwhile */
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  for (int fd = 0; fd < 64; ++fd) close(fd);
  char name[4096];
  snprintf(name, sizeof name, "%s/daemon", folder == NULL ? "/nowhere" : folder);
  const int fd = open(name, O_CREAT | O_WRONLY, 0600);
  dprintf(fd, "%d", (int)getpid());
  close(fd);
  sleep(120);
  _exit(0);
}
/* Says whether the kernel let it end the process that watches it. */
static void signal_parent(void) {
  printf(kill(getppid(), SIGTERM) == 0 ? "it got through\n" : "it was kept back\n");
  fflush(stdout);
}
/* More than a machine has; written to, it would take it from others. */
static void take_all_memory(void) {
  void* all = mmap(NULL, (size_t)1 << 37, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char score[16] = {0};
  const int fd = open("/proc/self/oom_score_adj", O_RDONLY);
  if (read(fd, score, sizeof score - 1) <= 0) abort();
  close(fd);
  printf("memory %s, score %s", all == MAP_FAILED ? "refused" : "granted", score);
  fflush(stdout);
}
static void crash_at_exit(void) {
  atexit(segfault);
}
/* Says where it may write, and writes; aborts where that is no empty folder for it alone. */
static void write_cache(void) {
  const char* folder = getenv("XDG_CACHE_HOME");
  struct stat facts;
  char deep[4096];
  if (folder == NULL || stat(folder, &facts) != 0 || (facts.st_mode & 07777) != 0700 ||
      facts.st_uid != geteuid() || facts.st_nlink != 2)
    abort();
  printf("cache in %s\n", folder);
  fflush(stdout);
  snprintf(deep, sizeof deep, "%s/deep", folder);
  if (mkdir(deep, 0755) != 0) abort();
  snprintf(deep, sizeof deep, "%s/deep/file", folder);
  const int fd = open(deep, O_CREAT | O_EXCL | O_WRONLY, 0644);
  if (fd < 0 || write(fd, deep, 16) != 16 || close(fd) != 0) abort();
}
/* In which class it works, and whether it leads no session of another process. */
static void tell_priority(void) {
  printf("policy %d nice %d disk %ld\n", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0),
         syscall(SYS_ioprio_get, 1, 0) >> 13);
  fflush(stdout);
}
/* One more byte in a file of the folder that it may write to: so many probes shared that folder. */
static void count_probe(void) {
  const char* folder = getenv("XDG_CACHE_HOME");
  char name[4096];
  snprintf(name, sizeof name, "%s/probes", folder == NULL ? "/nowhere" : folder);
  const int fd = open(name, O_CREAT | O_APPEND | O_WRONLY, 0600);
  if (fd < 0 || write(fd, "1", 1) != 1 || close(fd) != 0) abort();
}
static void* burn(void* until) {
  const time_t end = *(const time_t*)until;
  while (time(NULL) < end)
    for (volatile long i = 0; i < 1000000; ++i) continue;
  return NULL;
}
/* All CPUs, as a driver that compiles. */
static void burn_all_cpus(int seconds) {
  pthread_t threads[64];
  time_t end = time(NULL) + seconds;
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  if (n > 64) n = 64;
  for (long i = 0; i < n; ++i)
    if (pthread_create(&threads[i], NULL, burn, &end) != 0) abort();
  for (long i = 0; i < n; ++i) pthread_join(threads[i], NULL);
}
/* More than a folder for drivers may hold. */
static void write_too_much(void) {
  const char* folder = getenv("XDG_CACHE_HOME");
  char name[4096];
  static char block[1 << 20];
  memset(block, 1, sizeof block);
  snprintf(name, sizeof name, "%s/much", folder == NULL ? "/nowhere" : folder);
  const int fd = open(name, O_CREAT | O_WRONLY, 0600);
  if (fd < 0) abort();
  for (int i = 0; i < 129; ++i)
    if (write(fd, block, sizeof block) != (ssize_t)sizeof block) abort();
  close(fd);
}
static void forget(void* nothing) {
  (void)nothing;
}
extern int __cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* library);
extern void* __dso_handle __attribute__((visibility("hidden")));
static void destroy_with_thread(void) {
  __cxa_thread_atexit_impl(forget, NULL, &__dso_handle);
}

#endif
