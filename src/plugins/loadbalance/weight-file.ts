import { Name } from "../../dns/index.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { FileWatch } from "../../lib/files/file-watch.ts";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { SetupError, type Site } from "../../plugin/index.ts";

/** For addresses that the file does not name. */
export const DEFAULT_WEIGHT = 1;

const MAX_WEIGHT = 255;

/** A shorter interval would keep the server busy reading. Milliseconds. */
const SHORTEST_RELOAD = 100;

/** Weights from a file, read again when it changes. */
export class WeightFile {
  weights: WeightTable = new WeightTable();
  readonly #path: string;
  readonly #reload: number;
  readonly #site: Site;
  #watch: FileWatch | undefined;

  /** @param reload milliseconds, 0 for never */
  constructor(path: string, reload: number, site: Site) {
    this.#path = path;
    this.#reload = reload;
    this.#site = site;
  }

  /**
   * Loads the file; a missing one may be created later. @throws SetupError if the file is faulty, or missing without
   * reloads
   */
  async start(): Promise<void> {
    let problem: unknown;
    const { clock, log } = this.#site;
    this.#watch = new FileWatch({
      paths: [this.#path],
      intervalMs: Math.max(this.#reload, SHORTEST_RELOAD),
      clock,
      onChange: ([change]) => this.#change(change?.content),
      onError: (error) => {
        problem = error;
        log.warning(`weight file ${this.#path} cannot be read: ${fileFault(error)}`);
      },
    });
    const content = (await this.#watch.start()).get(this.#path);
    if (this.#reload === 0) this.#watch.stop();
    if (content === undefined) {
      if (this.#reload > 0) return;
      throw new SetupError(
        `weight file ${this.#path} cannot be read: ${fileFault(problem)}; create it, or set reload above 0`,
      );
    }
    try {
      this.#take(content);
    } catch (error) {
      if (error instanceof WeightFileError) throw new SetupError(error.message, { cause: error });
      throw error;
    }
  }

  stop(): void {
    this.#watch?.stop();
  }

  #change(content: Uint8Array | undefined): void {
    if (content === undefined) return;
    try {
      this.#take(content);
    } catch (error) {
      if (!(error instanceof WeightFileError)) throw error;
      this.#site.log.error(`${error.message}; keeping the previous weights`);
    }
  }

  #take(content: Uint8Array): void {
    this.weights = WeightTable.parse(Buffer.from(content).toString("utf8"), this.#path);
    this.#site.log.info(`Successfully reloaded weight file ${this.#path}`);
  }
}

/** A weight file with an invalid line. */
export class WeightFileError extends Error {
  override readonly name = "WeightFileError";
  readonly file: string;
  /** Line number, from 1. */
  readonly line: number;

  constructor(problem: string, file: string, line: number, hint = "") {
    super(`${problem} in weight file ${file}, line ${line}${hint}`);
    this.file = file;
    this.line = line;
  }
}

/** Weights by owner and address. */
export class WeightTable {
  readonly #byOwner = new Map<string, Map<string, number>>();

  /**
   * Parses the file. A line with one word names an owner, one with two words an address of it and its weight; `#`
   * begins a comment. @throws WeightFileError
   */
  static parse(text: string, file: string): WeightTable {
    const table = new WeightTable();
    let weights: Map<string, number> | undefined;
    for (const [index, line] of text.split("\n").entries()) {
      const fail = (problem: string, hint?: string): WeightFileError =>
        new WeightFileError(problem, file, index + 1, hint);
      if (line.includes("\0")) throw fail("not a text file: NUL octet");
      const content = (line.split("#", 1)[0] ?? "").trim();
      if (content === "") continue;
      const [first = "", second, third] = content.split(/\s+/);
      if (third !== undefined) throw fail(`could not parse weight line:"${content}"`);
      if (second === undefined) {
        const owner = parseIpAddress(first) === undefined ? Name.tryParse(first) : undefined;
        if (owner === undefined)
          throw fail(`wrong domain name:"${first}"`, ". (Maybe a missing weight value?)");
        weights = table.#ownerOf(owner);
        continue;
      }
      const address = parseIpAddress(first);
      if (address === undefined) throw fail(`wrong IP address:"${first}"`);
      const weight = /^\d{1,3}$/.test(second) ? Number(second) : 0;
      if (weight < 1 || weight > MAX_WEIGHT) throw fail(`wrong weight value:"${second}"`);
      if (weights === undefined) throw fail("missing domain name");
      weights.set(formatIpAddress(address), weight);
    }
    return table;
  }

  /** Weights by address in canonical text; the case of the owner does not matter. */
  of(owner: Name): ReadonlyMap<string, number> | undefined {
    return this.#byOwner.get(keyOf(owner));
  }

  #ownerOf(owner: Name): Map<string, number> {
    const key = keyOf(owner);
    const weights = this.#byOwner.get(key) ?? new Map<string, number>();
    this.#byOwner.set(key, weights);
    return weights;
  }
}

function keyOf(owner: Name): string {
  return owner.toLowerCase().toString();
}
