/** A word that is hardly the one that was meant, with what there is to say of that one. */
export interface NearWord {
  readonly word: string;
  readonly note: string;
}
