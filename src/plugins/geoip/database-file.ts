import { fileFault } from "../../lib/files/file-fault.ts";
import { DiskFileReader } from "../../lib/files/file-watch.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SetupError, type Site, type Timer } from "../../plugin/index.ts";
import { DatabaseError, GeoDatabase } from "./database.ts";

/** Milliseconds between two checks of the file. Databases are published at most twice a week. */
const LOOK_INTERVAL = 10_000;

/** The database in a file. A changed file replaces it when it was read completely; a faulty one changes nothing. */
export class DatabaseFile {
  readonly #path: string;
  readonly #site: Site;
  readonly #files = new DiskFileReader();
  #database: GeoDatabase | undefined;
  #stamp: string | undefined;
  #problem = "";
  #timer: Timer | undefined;
  #stopped = false;

  constructor(path: string, site: Site) {
    this.#path = path;
    this.#site = site;
  }

  get database(): GeoDatabase | undefined {
    return this.#database;
  }

  /** @throws SetupError */
  async start(): Promise<void> {
    try {
      await this.#read();
    } catch (error) {
      const isDatabase = error instanceof DatabaseError && !error.message.startsWith("error opening");
      const fault =
        error instanceof DatabaseError ? error.message : `open ${this.#path}: ${fileFault(error)}`;
      const message = isDatabase ? fault : `failed to open database file: ${fault}`;
      throw new SetupError(message, { cause: error });
    }
    this.#schedule();
  }

  /** Checks the file now. */
  async check(): Promise<void> {
    try {
      if (await this.#read()) this.#site.log.info(`read ${this.#path} again: ${this.describe()}`);
      this.#problem = "";
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== this.#problem)
        this.#site.log.error(`${this.#path} cannot be used, keeping the previous database: ${problem}`);
      this.#problem = problem;
    }
  }

  describe(): string {
    const { type = "none", builtAt } = this.#database ?? {};
    return builtAt === undefined ? type : `${type} of ${builtAt.toISOString().slice(0, 10)}`;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** @returns whether the file has changed */
  async #read(): Promise<boolean> {
    const read = await this.#files.readIfNew(this.#path, this.#stamp);
    if (read === undefined) return false;
    // A file that is still being written is read again.
    this.#database = new GeoDatabase(read.content);
    this.#stamp = read.stamp;
    return true;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = this.#site.clock.after(LOOK_INTERVAL, () => {
      void this.check().then(() => this.#schedule());
    });
  }
}
