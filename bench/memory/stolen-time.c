/*
 * What the machine itself takes of a processor: a loop that only reads how long its thread has had it for. Between two looks there are some
 * hundred nanoseconds, unless the kernel handles interrupts or a hypervisor runs something else, for which the thread is charged as well. Prints
 * the milliseconds on the processor, how many gaps were longer than LONG, and the longest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Milliseconds. */
static const double LONG = 5;

static double processor_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int count, char **words) {
  double until = count > 1 ? atof(words[1]) : 1000;
  double last = processor_time(), longest = 0;
  int gaps = 0;
  while (last < until) {
    double now = processor_time(), gap = now - last;
    if (gap > LONG) gaps++;
    if (gap > longest) longest = gap;
    last = now;
  }
  printf("%.0f %d %.3f\n", last, gaps, longest);
}
