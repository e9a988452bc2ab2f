import type { Spread } from "../numbers/statistics.ts";

/** `4.71 (4.60–4.83)`; without brackets where all rounds look the same. Exported for its test. */
export function spreadText(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return "-";
  const text = (value: number): string =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const [low, middle, high] = [text(spread.min), text(spread.median), text(spread.max)];
  return low === high ? middle : `${middle} (${low}–${high})`;
}
