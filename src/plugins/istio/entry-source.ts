/** Fills a table. */
export interface EntrySource {
  /** @throws SetupError if the source cannot start */
  start(): Promise<void>;
  stop(): Promise<void>;
  describe(): string;
}
