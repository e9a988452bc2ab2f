/** The clients that exceed their limits most, of this minute and the last, in bounded memory. */
import { HeavyHitters } from "../../lib/collections/heavy-hitters.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import { countOf } from "../../lib/text/count-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { PluginFault } from "../contract/plugin-instance.ts";
import type { ClientWords } from "../message/client-words.ts";

/** A client that makes up more than a 32nd of all refusals has a place for certain. */
const PLACES = 32;
const MINUTE = 60_000;
/** Clients named in one log line. */
const NAMED = 3;
/** Clients that the console and `doctor` show. */
const SHOWN = 5;

export interface Offender {
  /** An address, a network, a namespace or a workload. */
  readonly client: string;
  /** The limit that it exceeds. */
  readonly limit: string;
  readonly count: number;
}

export class Offenders {
  readonly #clock: Clock;
  readonly #log: (line: string) => void;
  readonly #hitters = new HeavyHitters(PLACES);
  readonly #addresses = new Uint8Array(16 * PLACES);
  readonly #lengths = new Uint8Array(PLACES);
  readonly #names: string[] = new Array<string>(PLACES).fill("");
  readonly #limits: string[] = new Array<string>(PLACES).fill("");
  readonly #prefixLengths: { readonly 4: number; readonly 6: number };
  #total = 0;
  #last: readonly Offender[] = [];
  #timer: Timer | undefined;

  /**
   * @param prefixLengths bits of an address that make a client
   * @param log gets a line when clients begin to exceed their limits, and one each minute while they do
   */
  constructor(
    clock: Clock,
    log: (line: string) => void,
    prefixLengths: { readonly 4: number; readonly 6: number },
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#prefixLengths = prefixLengths;
  }

  /**
   * A client exceeded a limit.
   * @param low, high a hash of client and limit
   * @param name of the client, if it is known by more than its address
   */
  note(low: number, high: number, limit: string, { family, octets }: ClientWords, name: string): void {
    const place = this.#hitters.note(low, high);
    this.#total++;
    if (this.#hitters.isNew) {
      this.#names[place] = name;
      this.#limits[place] = limit;
      this.#lengths[place] = family === 4 ? 4 : 16;
      this.#addresses.set(octets, 16 * place);
    }
    if (this.#timer !== undefined) return;
    this.#timer = this.#clock.after(MINUTE, this.#endMinute);
    if (this.#last.length === 0) this.#log(`${this.#client(place)} exceeds its limit '${limit}'`);
  }

  /** Of the last minute, or of this one if there were none in the last; the most frequent first. */
  list(): readonly Offender[] {
    return this.#last.length > 0 ? this.#last : this.#ofThisMinute();
  }

  /** For `describeState` of a plugin: a line for each of the most frequent. */
  describe(): readonly string[] {
    return this.list()
      .slice(0, SHOWN)
      .map(
        ({ client, limit, count }) => `${client} exceeds '${limit}': ${countOf(count, "query", "queries")}`,
      );
  }

  /** For `faults` of a plugin: the most frequent. */
  faults(): readonly PluginFault[] {
    return this.list()
      .slice(0, SHOWN)
      .map(({ client, limit, count }) => ({
        subject: client,
        reason: `exceeds the limit '${limit}': ${countOf(count, "query", "queries")} in a minute`,
      }));
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  readonly #endMinute = (): void => {
    this.#timer = undefined;
    this.#last = this.#ofThisMinute();
    const named = this.#last
      .slice(0, NAMED)
      .map(({ client, limit, count }) => `${client} (${limit}: ${count})`);
    if (this.#total > 0) {
      this.#log(
        `${countOf(this.#total, "query", "queries")} above the limits in the last minute, most from ${named.join(", ")}`,
      );
      this.#timer = this.#clock.after(MINUTE, this.#endMinute);
    }
    this.#total = 0;
    this.#hitters.clear();
  };

  #ofThisMinute(): Offender[] {
    return this.#hitters.ranked().map((place) => ({
      client: this.#client(place),
      limit: this.#limits[place] ?? "",
      count: this.#hitters.count(place),
    }));
  }

  #client(place: number): string {
    const name = this.#names[place] ?? "";
    if (name !== "") return name;
    const length = this.#lengths[place] ?? 4;
    const address = formatIpAddress(this.#addresses.slice(16 * place, 16 * place + length));
    const prefix = this.#prefixLengths[length === 4 ? 4 : 6];
    return prefix === 8 * length ? address : `${address}/${prefix}`;
  }
}
