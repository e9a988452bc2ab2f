/** Fills a table. */
export interface EntrySource {
  /** @throws SetupError where it cannot begin */
  start(): Promise<void>;
  stop(): Promise<void>;
  describe(): string;
}
