/** A set of names, each of which stands for itself and all names below. */
import { hashName, type Name } from "./name.ts";
import { octetAt } from "./octets.ts";

export class NameSet {
  readonly #byHash = new Map<number, Name[]>();

  constructor(names: Iterable<Name> = []) {
    for (const name of names) this.add(name);
  }

  add(name: Name): void {
    const others = this.#byHash.get(name.hash);
    if (others === undefined) this.#byHash.set(name.hash, [name]);
    else if (!others.some((other) => other.equals(name))) others.push(name);
  }

  /** True if the set has `name` or an ancestor of it. The cost depends on the name, not on the set. */
  covers(name: Name): boolean {
    const { folded } = name;
    for (let at = 0; ; at += octetAt(folded, at) + 1) {
      const found = this.#byHash.get(hashName(folded, at, folded.length));
      if (found?.some((ancestor) => name.isAtOrBelow(ancestor)) === true) return true;
      if (octetAt(folded, at) === 0) return false;
    }
  }
}
