/**
 * Records the inputs of a configuration, to tell whether reading it again would give the same result: reading is
 * slow, as its code rarely runs.
 */
import { isDeepStrictEqual } from "node:util";
import type { CorefileHost, FileContent } from "../../corefile/host.ts";

/** A host that records its answers. */
export class RecordedHost implements CorefileHost {
  readonly #host: CorefileHost;
  readonly #files = new Map<string, FileContent>();
  readonly #lists = new Map<string, readonly string[] | undefined>();
  readonly #variables = new Map<string, string | undefined>();

  constructor(host: CorefileHost) {
    this.#host = host;
  }

  /** Whether the host would still answer every recorded call in the same way. */
  get isCurrent(): boolean {
    return (
      isSame(this.#files, (path) => this.#host.readFile(path)) &&
      isSame(this.#lists, (directory) => this.#host.list(directory)?.toSorted()) &&
      isSame(this.#variables, (name) => this.#host.environmentVariable(name))
    );
  }

  readFile(path: string): FileContent {
    const content = this.#host.readFile(path);
    if (!this.#files.has(path)) this.#files.set(path, content);
    return content;
  }

  list(directory: string): readonly string[] | undefined {
    const names = this.#host.list(directory);
    if (!this.#lists.has(directory)) this.#lists.set(directory, names?.toSorted());
    return names;
  }

  environmentVariable(name: string): string | undefined {
    const value = this.#host.environmentVariable(name);
    if (!this.#variables.has(name)) this.#variables.set(name, value);
    return value;
  }
}

function isSame<T>(known: ReadonlyMap<string, T>, ask: (key: string) => T): boolean {
  for (const [key, value] of known) if (!isDeepStrictEqual(ask(key), value)) return false;
  return true;
}
