/** Lists of names can be as long as a namespace is large; people read a few. */
const MAX_LISTED = 5;

/** `a, b and c`; of long lists the first few. */
export function listOf(words: readonly string[]): string {
  const unique = [...new Set(words)];
  const shown = unique.slice(0, MAX_LISTED);
  const rest = unique.length - shown.length;
  if (rest > 0) return `${shown.join(", ")} and ${rest} more`;
  const last = shown.pop() ?? "";
  return shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
}
