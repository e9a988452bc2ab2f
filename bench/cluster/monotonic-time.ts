/** Milliseconds of the machine's monotonic clock: all processes see the same (clock_gettime(2), CLOCK_MONOTONIC). */
export function monotonicMilliseconds(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
