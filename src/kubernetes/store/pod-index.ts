/** Pods by name and by address. Filled only for `pods verified`, and for what wants to know clients. */

import type { AddressKey } from "../objects/addresses.ts";
import { equalPods } from "../objects/equality.ts";
import type { Identity, Pod } from "../objects/objects.ts";
import { AddressIndex } from "./address-index.ts";
import type { ChangeRecorder } from "./store-change.ts";

export class PodIndex {
  /** Namespace, then name: the pods' own texts serve as keys, where a joined key would be a text more for each pod. */
  readonly #byName = new Map<string, Map<string, Pod>>();
  readonly #byAddress = new AddressIndex<Pod>();

  /** The pods that have an address: one, unless they live on their node's network. */
  at(key: AddressKey): readonly Pod[] {
    return this.#byAddress.get(key);
  }

  named(namespace: string, name: string): Pod | undefined {
    return this.#byName.get(namespace)?.get(name);
  }

  /** Returns the object that is kept: the old one if the new one says nothing new. A pod without address is dropped. */
  put(pod: Pod, change: ChangeRecorder): Pod {
    if (pod.addresses.length === 0) {
      this.delete(pod, change);
      return pod;
    }
    const old = this.#byName.get(pod.namespace)?.get(pod.name);
    if (old !== undefined && equalPods(old, pod)) return old;
    this.#replace(old, pod, change);

    let siblings = this.#byName.get(pod.namespace);
    if (siblings === undefined) {
      siblings = new Map();
      this.#byName.set(pod.namespace, siblings);
    }
    siblings.set(pod.name, pod);
    return pod;
  }

  delete({ namespace, name }: Identity, change: ChangeRecorder): void {
    const siblings = this.#byName.get(namespace);
    const old = siblings?.get(name);
    if (siblings === undefined || old === undefined) return;
    siblings.delete(name);
    if (siblings.size === 0) this.#byName.delete(namespace);
    this.#replace(old, undefined, change);
  }

  *pods(): Generator<Pod> {
    for (const siblings of this.#byName.values()) yield* siblings.values();
  }

  #replace(old: Pod | undefined, pod: Pod | undefined, change: ChangeRecorder): void {
    for (const key of old?.addresses ?? []) {
      if (old !== undefined) this.#byAddress.delete(key, old);
      change.podAddress(key);
    }
    for (const key of pod?.addresses ?? []) {
      if (pod !== undefined) this.#byAddress.add(key, pod);
      change.podAddress(key);
    }
  }
}
