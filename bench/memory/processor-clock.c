/*
 * Loaded into a measured server: what its threads, and the collections of V8 in them, take of the processor. Node's own figure for a thread
 * (getrusage) is that of the kernel's ticks, which are milliseconds long, and of collections Node tells the time by the clock alone.
 */
#include <stdint.h>
#include <time.h>

enum { ROOM = 4096 };

struct collection {
  double type, at, wall, processor;
};

static __thread struct collection ring[ROOM];
static __thread uint64_t noted, taken;
static __thread double wall_before, processor_before;

static double milliseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Milliseconds that this thread has had the processor for. */
double thread_processor(void) {
  return milliseconds(CLOCK_THREAD_CPUTIME_ID);
}

/* v8::Isolate::GCCallback. */
void collection_begins(void *isolate, int type, int flags) {
  (void)isolate, (void)type, (void)flags;
  wall_before = milliseconds(CLOCK_MONOTONIC);
  processor_before = milliseconds(CLOCK_THREAD_CPUTIME_ID);
}

void collection_ends(void *isolate, int type, int flags) {
  (void)isolate, (void)flags;
  ring[noted++ % ROOM] = (struct collection){
      type,
      wall_before,
      milliseconds(CLOCK_MONOTONIC) - wall_before,
      milliseconds(CLOCK_THREAD_CPUTIME_ID) - processor_before,
  };
}

/* Those of this thread since the last call: four numbers each. Returns how many. */
int take_collections(double *numbers, int room) {
  int count = 0;
  if (noted - taken > ROOM) taken = noted - ROOM;
  for (; taken < noted && count < room; taken++, count++) {
    const struct collection *each = &ring[taken % ROOM];
    *numbers++ = each->type;
    *numbers++ = each->at;
    *numbers++ = each->wall;
    *numbers++ = each->processor;
  }
  return count;
}
