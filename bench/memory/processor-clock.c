/*
 * Loaded into a measured server: what its threads, and the collections of V8 in them, take of the processor. Node's own figure for a thread
 * (getrusage) is that of the kernel's ticks, which are milliseconds long, and of collections Node tells the time by the clock alone. And for each
 * millisecond on the processor, where the thread was, the kernel included (perf_event_open(2)): a turn of which there are far fewer samples than
 * milliseconds is one in which not even the timer's interrupt came through.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

enum { PAGES = 64, FRAMES = 6, STACKS = 64, FACTS = 7, DEPTH = 16 };

static __thread struct rusage usage_before;
static __thread struct perf_event_mmap_page *samples;

/* Of this thread. Returns whether the kernel takes samples: it may be forbidden. */
int sample_thread(void) {
  struct perf_event_attr what = {
      .type = PERF_TYPE_SOFTWARE,
      .size = sizeof what,
      .config = PERF_COUNT_SW_CPU_CLOCK,
      .sample_period = 1000 * 1000,
      .sample_type = PERF_SAMPLE_CALLCHAIN,
      .sample_max_stack = DEPTH,
  };
  int event = syscall(SYS_perf_event_open, &what, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0) return 0;
  void *ring = mmap(0, (1 + PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  close(event);
  if (ring == MAP_FAILED) return 0;
  samples = ring;
  return 1;
}

void turn_begins(void) {
  getrusage(RUSAGE_THREAD, &usage_before);
  if (samples) __atomic_store_n(&samples->data_tail, __atomic_load_n(&samples->data_head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

static double since(struct timeval from, struct timeval to) {
  return (to.tv_sec - from.tv_sec) * 1e3 + (to.tv_usec - from.tv_usec) / 1e3;
}

static uint64_t word(uint64_t at) {
  return *(uint64_t *)((char *)samples + samples->data_offset + at % samples->data_size);
}

/*
 * What there is to say of the turn since the last call of turn_begins: milliseconds in the program and in the kernel, faults of pages that were in memory and
 * that were read, waits, times that others were given the processor, samples. As text a line for each stack that was seen: how often, and the
 * innermost addresses.
 */
void turn_facts(double *numbers, char *text, int room) {
  static __thread struct { int count; uint64_t frames[FRAMES]; } stacks[STACKS];
  struct rusage now;
  int known = 0, seen = 0;
  getrusage(RUSAGE_THREAD, &now);
  if (samples) {
    uint64_t head = __atomic_load_n(&samples->data_head, __ATOMIC_ACQUIRE);
    for (uint64_t at = samples->data_tail; at < head;) {
      uint64_t start = word(at);
      struct perf_event_header header;
      memcpy(&header, &start, sizeof header);
      if (header.size == 0) break;
      if (header.type == PERF_RECORD_SAMPLE) {
        uint64_t frames[FRAMES] = {0}, depth = word(at + 8);
        int kept = 0;
        /* Addresses of the last page are marks between the kernel's part and the program's. */
        for (uint64_t frame = 0; frame < depth && kept < FRAMES; frame++)
          if (word(at + 16 + 8 * frame) < (uint64_t)PERF_CONTEXT_MAX) frames[kept++] = word(at + 16 + 8 * frame);
        int same = 0;
        while (same < known && memcmp(stacks[same].frames, frames, sizeof frames)) same++;
        seen++;
        if (same == STACKS) same = STACKS - 1;
        else if (same == known) {
          stacks[known].count = 0;
          memcpy(stacks[known++].frames, frames, sizeof frames);
        }
        stacks[same].count++;
      }
      at += header.size;
    }
  }
  double facts[FACTS] = {
      since(usage_before.ru_utime, now.ru_utime), since(usage_before.ru_stime, now.ru_stime),
      now.ru_minflt - usage_before.ru_minflt,     now.ru_majflt - usage_before.ru_majflt,
      now.ru_nvcsw - usage_before.ru_nvcsw,       now.ru_nivcsw - usage_before.ru_nivcsw,
      seen,
  };
  memcpy(numbers, facts, sizeof facts);
  int used = 0;
  text[0] = 0;
  for (int stack = 0; stack < known && used < room - 200; stack++) {
    used += snprintf(text + used, room - used, "%d", stacks[stack].count);
    for (int frame = 0; frame < FRAMES && stacks[stack].frames[frame]; frame++)
      used += snprintf(text + used, room - used, " %llx", (unsigned long long)stacks[stack].frames[frame]);
    used += snprintf(text + used, room - used, "\n");
  }
}
