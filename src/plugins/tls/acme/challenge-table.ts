/** The TXT records that a certificate authority looks for, while it does. */
import { Name } from "../../../dns/index.ts";

/** `_acme-challenge.example.org.` with a text; plain values, which may be sent to another thread. */
export type Challenge = readonly [name: string, text: string];

/** One that is pending. */
export interface ShownChallenge {
  /** Resolves once whoever is asked answers with it. */
  readonly shown: Promise<void>;
  readonly hide: () => void;
}

/** Passes on that answers to names change; resolves once it is known everywhere. */
export type ChallengeWatcher = (names: readonly Name[]) => Promise<void>;

const MAX_CHALLENGES = 256;

/** One for all blocks of a configuration, handed on at a reload. */
export class ChallengeTable {
  readonly #names = new Map<string, { readonly name: Name; readonly texts: string[] }>();
  readonly #watchers = new Set<ChallengeWatcher>();

  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  get challenges(): Challenge[] {
    return [...this.#names].flatMap(([name, { texts }]) => texts.map((text): Challenge => [name, text]));
  }

  /** @returns nothing where no challenge is pending at this name */
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

  /** In place of all that there are. */
  replace(challenges: readonly Challenge[]): void {
    const touched = [...this.#names.values()].map(({ name }) => name);
    this.#names.clear();
    for (const [name, text] of challenges) this.add(name, text);
    void this.#tell(touched);
  }

  /** @returns ends it */
  watch(changed: ChallengeWatcher): () => void {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  async #tell(names: readonly Name[]): Promise<void> {
    await Promise.all([...this.#watchers].map((changed) => changed(names)));
  }
}
