/** The TXT records for the CA, for as long as it needs them. */
import { Name } from "../../../dns/index.ts";

/** `_acme-challenge.example.org.` with a text; plain values, which can be sent to other threads. */
export type Challenge = readonly [name: string, text: string];

/** A pending challenge. */
export interface ShownChallenge {
  /** Resolves when every thread answers with it. */
  readonly shown: Promise<void>;
  readonly hide: () => void;
}

/** Reports that answers to names change; resolves when every thread has the change. */
export type ChallengeWatcher = (names: readonly Name[]) => Promise<void>;

const MAX_CHALLENGES = 256;

/** One table for all blocks of a configuration, handed on at a reload. */
export class ChallengeTable {
  readonly #names = new Map<string, { readonly name: Name; readonly texts: string[] }>();
  readonly #watchers = new Set<ChallengeWatcher>();

  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  get challenges(): Challenge[] {
    return [...this.#names].flatMap(([name, { texts }]) => texts.map((text): Challenge => [name, text]));
  }

  /** @returns nothing without a pending challenge for this name */
  textsOf(name: Name): readonly string[] | undefined {
    return this.#names.get(name.toLowerCase().toString())?.texts;
  }

  add(name: string, text: string): ShownChallenge {
    if (this.#names.size >= MAX_CHALLENGES) throw new RangeError("too many challenges are pending");
    const pending = this.#names.get(name) ?? { name: Name.parse(name), texts: [] };
    this.#names.set(name, pending);
    pending.texts.push(text);
    const shown = this.#tell([pending.name]);
    const hide = (): void => {
      const at = pending.texts.indexOf(text);
      if (at < 0) return;
      pending.texts.splice(at, 1);
      if (pending.texts.length === 0) this.#names.delete(name);
      void this.#tell([pending.name]);
    };
    return { shown, hide };
  }

  /** Replaces all challenges. */
  replace(challenges: readonly Challenge[]): void {
    const touched = [...this.#names.values()].map(({ name }) => name);
    this.#names.clear();
    for (const [name, text] of challenges) this.add(name, text);
    void this.#tell(touched);
  }

  /** @returns a function that removes the watcher */
  watch(changed: ChallengeWatcher): () => void {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  async #tell(names: readonly Name[]): Promise<void> {
    await Promise.all([...this.#watchers].map((changed) => changed(names)));
  }
}
