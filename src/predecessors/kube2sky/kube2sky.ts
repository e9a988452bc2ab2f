/** kube2sky: writes a cluster's services, endpoints and pods as SkyDNS keys to etcd (docs/spec/kube-dns.md#kube2sky). */
import type { Name } from "../../dns/name.ts";
import { EtcdClient, rangeBelow } from "../../etcd/client/etcd-client.ts";
import { KeyMirror } from "../../etcd/mirror/key-mirror.ts";
import {
  addressKey,
  addressOfKey,
  dashedAddress,
  parseDashedAddress,
} from "../../kubernetes/objects/addresses.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import { HttpPages } from "../http-pages.ts";
import { KeyWriter } from "./key-writer.ts";
import { type Keys, WantedKeys } from "./wanted-keys.ts";

export interface Kube2skyOptions {
  /** Filled by the caller: services, endpoints and pods. */
  readonly store: ClusterStore;
  readonly domain: Name;
  readonly endpoints: readonly string[];
  /** Milliseconds for which a write is retried. */
  readonly mutationTimeout: number;
  readonly healthPort: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** Called when etcd takes no writes. */
  readonly givenUp: (error: Error) => void;
}

const PREFIX = "/skydns";
const TIMEOUT = 5_000;
const MAX_OCTETS = 512 * 1024 * 1024;

export class Kube2sky {
  readonly #options: Kube2skyOptions;
  readonly #keys: WantedKeys;
  readonly #client: EtcdClient;
  readonly #mirror: KeyMirror;
  readonly #writer: KeyWriter;
  readonly #pages: HttpPages;
  readonly #listed = Promise.withResolvers<void>();
  #unsubscribe: (() => void) | undefined;
  #isStopped = false;

  constructor(options: Kube2skyOptions) {
    const { clock, log, random, endpoints, domain } = options;
    this.#options = options;
    this.#keys = new WantedKeys(PREFIX, domain);
    this.#client = new EtcdClient({ endpoints, clock, timeout: TIMEOUT });
    this.#mirror = new KeyMirror({
      client: this.#client,
      ranges: ["svc", "pod"].map((part) => rangeBelow(`${this.#keys.top}/${part}`)),
      wants: () => true,
      clock,
      log,
      random,
      maxOctets: MAX_OCTETS,
    });
    this.#mirror.listen({
      seen: () => undefined,
      changed: (key) => this.#keyChanged(key),
      lost: () => undefined,
      listed: () => {
        this.#listed.resolve();
        if (this.#unsubscribe !== undefined) this.#touchEverything();
      },
    });
    this.#writer = new KeyWriter({
      client: this.#client,
      mirror: this.#mirror,
      wanted: (top) => this.#wanted(top),
      clock,
      log,
      patience: options.mutationTimeout,
      givenUp: options.givenUp,
    });
    this.#pages = new HttpPages((path) =>
      path === "/readiness" ? { status: 200, body: "ok\n" } : undefined,
    );
  }

  /**
   * Waits for both sides and writes missing keys. Then reports ready.
   * @returns the port of the readiness page
   */
  async start(): Promise<number> {
    this.#mirror.start();
    await Promise.all([this.#listed.promise, this.#options.store.whenSynced()]);
    if (this.#isStopped) return 0;
    this.#unsubscribe = this.#options.store.subscribe(({ services, podAddresses }) => {
      for (const key of services) this.#touchService(key);
      // A pod may have moved from any namespace, so all that may have a record for its address are checked.
      for (const key of podAddresses) this.#touchPods(addressOfKey(key));
    });
    this.#touchEverything();
    return this.#pages.listen("0.0.0.0", this.#options.healthPort);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#listed.resolve();
    this.#unsubscribe?.();
    this.#writer.stop();
    this.#mirror.stop();
    this.#client.close();
    await this.#pages.close();
  }

  #touchService(key: string): void {
    const [name = "", namespace = ""] = key.split(".");
    this.#writer.touch(this.#keys.topOfService(namespace, name));
  }

  #touchPods(octets: Uint8Array): void {
    const label = dashedAddress(octets, 0, octets.length === 4 ? 4 : 16);
    const { store } = this.#options;
    const namespaces = new Set(store.pods.at(addressKey(octets)).map(({ namespace }) => namespace));
    for (const { key } of this.#mirror.tree.below(`${this.#keys.top}/pod`, MAX_POD_KEYS)) {
      const [namespace, own] = key.slice(this.#keys.top.length + "/pod/".length).split("/");
      if (namespace !== undefined && own === label) namespaces.add(namespace);
    }
    for (const namespace of namespaces) this.#writer.touch(this.#keys.topOfPod(namespace, label));
  }

  /** A key changed, perhaps through another program. */
  #keyChanged(key: string): void {
    const segments = key.slice(this.#keys.top.length + 1).split("/");
    if (this.#unsubscribe !== undefined && segments.length >= 3)
      this.#writer.touch(`${this.#keys.top}/${segments.slice(0, 3).join("/")}`);
  }

  #touchEverything(): void {
    const { store } = this.#options;
    for (const { namespace, name } of store.services.services())
      this.#writer.touch(this.#keys.topOfService(namespace, name));
    for (const { namespace, addresses } of store.pods.pods()) {
      for (const address of addresses) {
        const octets = addressOfKey(address);
        const label = dashedAddress(octets, 0, octets.length === 4 ? 4 : 16);
        this.#writer.touch(this.#keys.topOfPod(namespace, label));
      }
    }
    // Keys in etcd that the cluster does not have.
    for (const { key } of this.#mirror.tree.below(this.#keys.top, MAX_POD_KEYS)) this.#keyChanged(key);
  }

  /** @param top a key of {@link WantedKeys.topOfService} or {@link WantedKeys.topOfPod} */
  #wanted(top: string): Keys {
    const { store } = this.#options;
    const [kind, namespace = "", name = ""] = top.slice(this.#keys.top.length + 1).split("/");
    if (kind === "svc") {
      const entry = store.services.entry(`${name}.${namespace}`);
      return entry === undefined ? new Map() : this.#keys.ofService(entry);
    }
    const octets = parseDashedAddress(name);
    const pods = octets === undefined ? [] : store.pods.at(addressKey(octets));
    const pod = pods.find((each) => each.namespace === namespace);
    const keys: Keys = pod === undefined ? new Map() : this.#keys.ofPod(pod);
    for (const key of [...keys.keys()]) if (!key.startsWith(`${top}/`)) keys.delete(key);
    return keys;
  }
}

const MAX_POD_KEYS = 1_000_000;
