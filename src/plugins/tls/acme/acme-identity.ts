/** The form of `tls` with `acme`: certificates of a block that are obtained and renewed automatically. */
import type { SecureContext } from "node:tls";
import { nodeTls } from "../../../lib/files/node-modules.ts";
import { reasonOf } from "../../../lib/net/http-client.ts";
import type { Offer } from "../../../plugin/contract/service.ts";
import {
  type PlacedPlugin,
  type PluginInstance,
  ServiceKey,
  SetupError,
  type Site,
} from "../../../plugin/index.ts";
import { AcmeState, trustedWith } from "./acme-state.ts";
import type { StoredCertificate } from "./acme-storage.ts";
import type { AcmeConfig } from "./config.ts";
import type { ManagedCertificate } from "./managed-certificate.ts";

const ACME_STATE: ServiceKey<AcmeState> = new ServiceKey("acme");

/** The message from the data plane that obtained a certificate to the others: name, chain and key. */
type Issued = readonly [domain: string, chain: string, key: string];

export function acmeState(site: Site): AcmeState {
  return site.shared("acme", () => new AcmeState());
}

export class AcmeIdentity implements PluginInstance {
  readonly #site: Site;
  readonly #config: AcmeConfig;
  readonly #state: AcmeState;
  readonly #certificates = new Map<string, ManagedCertificate>();
  readonly #endWatches: (() => void)[] = [];
  readonly services: readonly Offer<unknown>[];

  /** @throws SetupError */
  constructor(config: AcmeConfig, site: Site) {
    this.#site = site;
    this.#config = config;
    this.#state = acmeState(site);
    this.#state.claim(config);
    this.services = [ACME_STATE.offer(this.#state)];
    site.feed.provide(() => this.#issued);
    site.feed.receive((message) => this.#hear(message as Issued));
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const former of ACME_STATE.among(predecessors)) this.#state.inherit(former);
  }

  async examine(): Promise<void> {
    const { caRoot } = this.#config;
    if (caRoot !== undefined) await trustedWith(this.#site.resolvePath(caRoot));
  }

  async start(): Promise<void> {
    const { domains, storage } = this.#config;
    for (const domain of domains) {
      const certificate = await this.#state.certificate(domain, this.#config, this.#site);
      certificate.hold();
      this.#certificates.set(domain, certificate);
      this.#endWatches.push(certificate.watch(() => this.#show(domain)));
      if (this.#site.feed.role === "leader") await certificate.load();
    }
    try {
      await this.#state.probe(this.#config);
    } catch (error) {
      throw new SetupError(
        `cannot write to ACME storage ${this.#site.resolvePath(storage)}: ${reasonOf(error)}`,
        {
          notes: [
            "name a folder that this process may write to: accounts and certificates have to outlive it",
          ],
        },
      );
    }
    this.#show();
  }

  started(): void {
    if (this.#site.feed.role === "follower") return;
    for (const certificate of this.#certificates.values()) certificate.begin();
  }

  stop(): void {
    for (const end of this.#endWatches.splice(0)) end();
    for (const certificate of this.#certificates.values()) certificate.release();
    this.#certificates.clear();
  }

  get #issued(): Issued[] {
    return [...this.#certificates].flatMap(([domain, { current }]): Issued[] =>
      current === undefined ? [] : [[domain, current.chain, current.key]],
    );
  }

  #hear([domain, chain, key]: Issued): void {
    this.#certificates.get(domain)?.take(chain, key);
  }

  /** @param changed the name with a new certificate */
  #show(changed?: string): void {
    const holder = this.#site.block.settings.identity;
    const contexts = new Map<string, SecureContext>();
    let first: StoredCertificate | undefined;
    for (const [domain, { current }] of this.#certificates) {
      if (current === undefined) continue;
      first ??= current;
      contexts.set(domain, nodeTls().createSecureContext(contextOf(current)));
      if (domain === changed) this.#site.feed.publish([domain, current.chain, current.key] satisfies Issued);
    }
    if (holder === undefined || first === undefined) return;
    holder.current = {
      context: contextOf(first),
      clientAuthentication: "nocert",
      keyLog: undefined,
      select: (name) => contexts.get(name) ?? contexts.get(name.replace(/^[^.]+/, "*")),
    };
  }
}

function contextOf({ chain, key }: StoredCertificate) {
  return { cert: chain, key, minVersion: "TLSv1.2" } as const;
}
