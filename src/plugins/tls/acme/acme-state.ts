/**
 * State that the blocks of one configuration share, and hand on to the next one: challenges, and certificates by
 * name.
 */
import { isIP } from "node:net";
import { join } from "node:path";
import { readTextFile } from "../../../lib/files/bounded-file.ts";
import { fileFault } from "../../../lib/files/file-fault.ts";
import { nodeTls } from "../../../lib/files/node-modules.ts";
import { SetupError, type Site } from "../../../plugin/index.ts";
import { AcmeClient, pause } from "./acme-client.ts";
import { AcmeError } from "./acme-error.ts";
import { AcmeHttp } from "./acme-http.ts";
import { AcmeStorage } from "./acme-storage.ts";
import { ChallengeTable } from "./challenge-table.ts";
import type { AcmeConfig } from "./config.ts";
import { ManagedCertificate } from "./managed-certificate.ts";

/** Milliseconds for a challenge to reach the `resolver`, and between two checks. */
const PROPAGATION = { patience: 120_000, interval: 2_000 };

interface Entry {
  readonly options: string;
  readonly certificate: ManagedCertificate;
}

export class AcmeState {
  challenges = new ChallengeTable();
  readonly #entries = new Map<string, Entry>();
  /** The options of each name in this configuration. */
  readonly #wanted = new Map<string, string>();
  readonly #clients = new Map<string, { readonly client: AcmeClient; readonly storage: AcmeStorage }>();

  /** @throws SetupError if another block has different options for a name */
  claim(config: AcmeConfig): void {
    const options = optionsOf(config);
    for (const domain of config.domains) {
      const others = this.#wanted.get(domain);
      if (others !== undefined && others !== options)
        throw new SetupError(`ACME domain "${domain}" is configured with conflicting options`);
      this.#wanted.set(domain, options);
    }
  }

  /** Takes over the certificates of another configuration for which the options are the same. */
  inherit(former: AcmeState): void {
    this.challenges = former.challenges;
    for (const [domain, entry] of former.#entries) {
      if (this.#wanted.get(domain) === entry.options) this.#entries.set(domain, entry);
    }
    for (const [options, client] of former.#clients) this.#clients.set(options, client);
  }

  /** The certificate of a name, created at the first call. @throws SetupError if the options are unusable */
  async certificate(domain: string, config: AcmeConfig, site: Site): Promise<ManagedCertificate> {
    const options = optionsOf(config);
    const known = this.#entries.get(domain);
    if (known !== undefined) return known.certificate;
    const { client, storage } = await this.#client(options, config, site);
    const { clock, random, log, metrics } = site;
    const { resolver } = config;
    const { challenges } = this;
    const certificate = new ManagedCertificate({
      domain,
      authority: new URL(config.ca).host,
      client,
      storage,
      clock,
      random,
      log,
      orders: metrics.counter({
        name: "portolan_tls_acme_orders_total",
        help: "Certificate orders by ACME, by outcome.",
        labels: ["certificate", "result"],
      }),
      expiry: certificateExpiry(metrics),
      show: async (name, text, signal) => {
        const challengeName = `_acme-challenge.${name}.`;
        const { hide, shown } = challenges.add(challengeName, text);
        try {
          // The CA asks as soon as the challenge is announced, and any thread may answer.
          await shown;
          if (resolver !== undefined) await untilSeen({ name: challengeName, text, resolver, clock, signal });
        } catch (error) {
          hide();
          throw error;
        }
        return hide;
      },
    });
    this.#entries.set(domain, { options, certificate });
    return certificate;
  }

  /** Checks that certificates can be stored. @throws the error of the file system */
  async probe(config: AcmeConfig): Promise<void> {
    await this.#clients.get(optionsOf(config))?.storage.probe();
  }

  async #client(
    options: string,
    config: AcmeConfig,
    site: Site,
  ): Promise<{ readonly client: AcmeClient; readonly storage: AcmeStorage }> {
    const known = this.#clients.get(options);
    if (known !== undefined) return known;
    const { ca, email, caRoot } = config;
    const storage = new AcmeStorage(join(site.resolvePath(config.storage), folderOf(ca), email ?? "default"));
    const tls = caRoot === undefined ? {} : { ca: await trustedWith(site.resolvePath(caRoot)) };
    const http = new AcmeHttp({
      environment: site.machine.environment,
      userAgent: `portolan/${site.version}`,
      tls,
    });
    const client = new AcmeClient({
      http,
      clock: site.clock,
      directory: ca,
      email,
      accountKey: once(() => storage.accountKey()),
    });
    const made = { client, storage };
    this.#clients.set(options, made);
    return made;
  }
}

/** The CAs that this machine's Node trusts, and those in a file. @throws SetupError */
export async function trustedWith(path: string): Promise<string[]> {
  try {
    const roots = await readTextFile(path);
    // Throws for invalid certificates.
    nodeTls().createSecureContext({ ca: roots });
    if (!roots.includes("BEGIN CERTIFICATE")) throw new Error("the file contains no certificate");
    return [...nodeTls().getCACertificates("default"), roots];
  } catch (error) {
    throw new SetupError(`could not read ACME ca_root ${path}: ${fileFault(error)}`);
  }
}

export function certificateExpiry(metrics: Site["metrics"]): ReturnType<Site["metrics"]["gauge"]> {
  return metrics.gauge({
    name: "portolan_tls_certificate_expiry_timestamp_seconds",
    help: "Time at which the certificate in force expires, in seconds since 1970.",
    labels: ["certificate"],
  });
}

/** Blocks with the same options share a certificate. */
function optionsOf({ ca, email, storage, caRoot, resolver }: AcmeConfig): string {
  return JSON.stringify([ca, email, storage, caRoot, resolver]);
}

function folderOf(ca: string): string {
  const { host, pathname } = new URL(ca);
  return `${host}${pathname}`.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");
}

/** Runs one attempt at a time; a failed one may be repeated. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

async function untilSeen({
  name,
  text,
  resolver,
  clock,
  signal,
}: {
  readonly name: string;
  readonly text: string;
  readonly resolver: string;
  readonly clock: Site["clock"];
  readonly signal: AbortSignal;
}): Promise<void> {
  const { Resolver, lookup } = await import("node:dns/promises");
  const [, host = "", port = "53"] = /^\[?(.*?)\]?:(\d+)$/.exec(resolver) ?? [];
  const address = isIP(host) === 0 ? (await lookup(host)).address : host;
  const asking = new Resolver({ timeout: 3_000, tries: 1 });
  asking.setServers([isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`]);
  const deadline = clock.now() + PROPAGATION.patience;
  for (;;) {
    const seen = await asking.resolveTxt(name).catch(() => []);
    if (seen.some((strings) => strings.join("") === text)) return;
    if (clock.now() > deadline)
      throw new AcmeError(`the resolver ${resolver} does not see the challenge at ${name}`);
    await pause(clock, PROPAGATION.interval, signal);
  }
}
