/**
 * A change in the cluster outdates answers that caches may hold. Their names are collected for a moment and then announced, so that
 * exactly those are forgotten.
 */
import type { Name } from "../../dns/name.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { joinDotted } from "./cluster-zone.ts";

/**
 * Least and most milliseconds between two announcements, in which changes are collected. Forgetting costs a look at
 * what is kept, and gets a tenth of the time. A change after a pause is announced at once.
 */
const SHORTEST_GATHERING = 1;
const LONGEST_GATHERING = 50;
const REST_PER_TELLING = 9;
/** The same where all is outdated: names were not even looked at, and whole zones are forgotten. */
const GATHERING_ALL = 100;
/** With more names than this it is quicker to forget whole zones. */
const MANY = 2_000;

export interface OutdatedNamesOptions {
  /** Forgotten as a whole where there are too many names. */
  readonly zones: readonly Name[];
  readonly clock: Clock;
  /** Told each name once; all names below it are meant as well. */
  readonly forget: (names: readonly Name[]) => void;
  /** Called before the names are told, to add what follows from all changes together. */
  readonly complete: () => void;
}

export class OutdatedClusterNames {
  readonly #options: OutdatedNamesOptions;
  /**
   * Another map each time, and none that is cleared: V8 has that refer to its next table, and once one has outlived two young collections, all that come
   * after it do with all their names.
   */
  #names = new Map<string | number, Name>();
  /** Whether the zones will be told whatever is added. */
  #all = false;
  #timer: Timer | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  #gathering = SHORTEST_GATHERING;

  constructor(options: OutdatedNamesOptions) {
    this.#options = options;
  }

  /** Tells what has been added, now or soon. */
  schedule(): void {
    if (this.#timer !== undefined) return;
    const { clock } = this.#options;
    const now = clock.now();
    const wait = this.#toldAt + (this.#all ? GATHERING_ALL : this.#gathering) - now;
    if (wait <= 0) this.#tell(now);
    else this.#timer = clock.after(wait, () => this.#tell(clock.now()));
  }

  /** Whether the name of a key will be announced already, so that it need not be built again. */
  has(key: string | number): boolean {
    return this.#all || this.#names.has(key);
  }

  /** @param key something by which the name is known if it comes again, and that no other has; its text unless given */
  add(name: Name, key: string | number = `${name}`): void {
    if (this.#all) return;
    this.#names.set(key, name);
    this.#limit();
  }

  /** Adds everything: the first listing of a cluster would name all that there is. */
  addAll(): void {
    this.#all = true;
    this.#names = new Map();
  }

  /** Adds labels, with dots between them, in front of a zone. */
  addBelow(zone: Name, labels: string): void {
    if (this.#all) return;
    const key = `${labels}.${zone}`;
    if (this.#names.has(key)) return;
    // What is longer than a name can be was never asked for.
    const name = joinDotted(labels, zone);
    if (name !== undefined) this.#names.set(key, name);
    this.#limit();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #limit(): void {
    if (this.#names.size > MANY) this.addAll();
  }

  #tell(began: number): void {
    this.#timer = undefined;
    const { clock, complete, forget, zones } = this.#options;
    complete();
    const names = this.#all ? zones : [...this.#names.values()];
    this.#all = false;
    this.#names = new Map();
    if (names.length > 0) forget(names);
    this.#toldAt = clock.now();
    const rest = REST_PER_TELLING * (this.#toldAt - began);
    this.#gathering = Math.min(Math.max(rest, SHORTEST_GATHERING), LONGEST_GATHERING);
  }
}
