/** `1 endpoint`, `3 endpoints`. @param nouns the plural, unless it is `noun` with an s */
export function countOf(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}
