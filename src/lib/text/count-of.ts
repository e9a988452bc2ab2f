/** `1 endpoint`, `3 endpoints`. @param nouns for more than one, where that is not `noun` with an s */
export function countOf(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`;
}
