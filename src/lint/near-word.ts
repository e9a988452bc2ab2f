/** A suspected misspelling, with a note on the word that was probably meant. */
export interface NearWord {
  readonly word: string;
  readonly note: string;
}
