/** What a configuration was read from, to know whether reading it again would give the same: the reading itself takes milliseconds of code that rarely runs. */
import { isDeepStrictEqual } from "node:util";
import type { CorefileHost, FileContent } from "../../corefile/host.ts";

/** A host that remembers what it has told. */
export class RecordedHost implements CorefileHost {
  readonly #host: CorefileHost;
  readonly #files = new Map<string, FileContent>();
  readonly #lists = new Map<string, readonly string[] | undefined>();
  readonly #variables = new Map<string, string | undefined>();

  constructor(host: CorefileHost) {
    this.#host = host;
  }

  /** Whether the host would say the same again of all that it was first asked for. */
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
