/**
 * A change in the cluster makes answers untrue that somebody may have kept: those of the cache in the same block. It is told the
 * names, so that exactly those are forgotten and a new pod's name is right at once.
 */
import { Name } from "../../dns/name.ts";
import { type AddressKey, addressOfKey } from "../../kubernetes/addresses.ts";
import { isReverseZone, joinLabels } from "../../kubernetes/cluster-zone.ts";
import type { ClusterStore } from "../../kubernetes/store.ts";
import type { StoreChange } from "../../kubernetes/store-change.ts";
import type { Clock, Timer } from "../../lib/clock.ts";

/** Milliseconds in which changes are gathered: forgetting costs a look at everything that is kept. */
const GATHERING = 5;
/** With more names than this it is quicker to forget whole zones. */
const MANY = 2_000;

export class TouchedNames {
  readonly #store: ClusterStore;
  readonly #forward: readonly Name[];
  readonly #reverse: readonly Name[];
  readonly #clock: Clock;
  readonly #forget: (names: readonly Name[]) => void;
  readonly #names = new Map<string, Name>();
  #timer: Timer | undefined;

  constructor(options: {
    store: ClusterStore;
    zones: readonly Name[];
    clock: Clock;
    forget: (names: readonly Name[]) => void;
  }) {
    this.#store = options.store;
    this.#forward = options.zones.filter((zone) => !isReverseZone(zone));
    this.#reverse = options.zones.filter(isReverseZone);
    this.#clock = options.clock;
    this.#forget = options.forget;
  }

  add(change: StoreChange): void {
    for (const zone of this.#forward) {
      for (const key of change.services) this.#below(zone, [...serviceLabels(key), "svc"]);
      for (const namespace of change.namespaces) {
        this.#below(zone, [namespace, "svc"]);
        this.#below(zone, [namespace, "pod"]);
      }
      if (change.podAddresses.length > 0) this.#below(zone, ["pod"]);
    }
    for (const key of change.addresses) {
      const name = reverseName(key);
      if (this.#reverse.some((zone) => name.isAtOrBelow(zone))) this.#names.set(`${name}`, name);
    }
    this.#timer ??= this.#clock.after(GATHERING, () => this.#tell());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #tell(): void {
    this.#timer = undefined;
    this.#addAliases();
    const names = this.#names.size > MANY ? [...this.#forward, ...this.#reverse] : [...this.#names.values()];
    this.#names.clear();
    if (names.length > 0) this.#forget(names);
  }

  /** The answer to an alias within the cluster holds the addresses of its target. */
  #addAliases(): void {
    for (const service of this.#store.services.services()) {
      if (service.type !== "externalName") continue;
      for (const zone of this.#forward) this.#below(zone, [service.name, service.namespace, "svc"]);
    }
  }

  #below(zone: Name, labels: readonly string[]): void {
    const key = `${labels.join(".")}.${zone}`;
    if (this.#names.has(key)) return;
    // What is longer than a name can be was never asked for.
    const name = joinLabels(labels, zone);
    if (name !== undefined) this.#names.set(key, name);
  }
}

/** `web.shop` -> `web`, `shop`. Neither has a dot in it. */
function serviceLabels(key: string): string[] {
  return key.split(".");
}

/** `4.3.2.1.in-addr.arpa.` or its relative of 32 nibbles (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function reverseName(key: AddressKey): Name {
  const octets = [...addressOfKey(key)].reverse();
  if (octets.length === 4) return Name.parse(`${octets.join(".")}.in-addr.arpa.`);
  const nibbles = octets.flatMap((octet) => [octet & 0xf, octet >>> 4]);
  return Name.parse(`${nibbles.map((nibble) => nibble.toString(16)).join(".")}.ip6.arpa.`);
}
