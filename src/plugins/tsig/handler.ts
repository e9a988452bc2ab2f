import {
  BADSIG,
  DEFAULT_TSIG_ALGORITHM,
  Rcode,
  TsigKeyRing,
  type TsigKeySource,
  verifyQuery,
} from "../../dns/index.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import {
  type CounterFamily,
  type Handler,
  type Next,
  type Outcome,
  type PluginInstance,
  type Query,
  SetupError,
  type Site,
} from "../../plugin/index.ts";
import { TSIG_KEYS } from "../../plugin/services/tsig-keys.ts";
import { requirement, type TsigConfig } from "./config.ts";
import { parseSecretsFile, SecretsFileError } from "./secrets-file.ts";

export class TransactionSignatures implements PluginInstance {
  readonly services: readonly Offer<unknown>[];
  readonly #config: TsigConfig;
  readonly #site: Site;
  readonly #own = new TsigKeyRing();
  /** Keys of all blocks of a listener, by its label: they are valid for every client of the listener. */
  readonly #ofListeners: Map<string, TsigKeyRing>;
  readonly #needsSignature: (type: number) => boolean;
  readonly #opcodeNeedsSignature: (opcode: number) => boolean;
  readonly #queries: CounterFamily;
  readonly #now: () => number;

  constructor(config: TsigConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#ofListeners = site.shared("tsig keys", () => new Map<string, TsigKeyRing>());
    this.#needsSignature = requirement(config.require?.what);
    this.#opcodeNeedsSignature = requirement(config.require_opcode?.what);
    this.#now = () => Math.floor(site.clock.wallTime() / 1000);
    this.services = [TSIG_KEYS.offer(this.#own)];
    this.#queries = site.metrics.counter({
      name: "portolan_tsig_queries_total",
      help: "Queries that were signed or had to be, by verification result.",
      labels: ["result"],
    });
  }

  examine(): Promise<void> {
    return this.start();
  }

  async start(): Promise<void> {
    for (const { name, key } of this.#config.secret)
      this.#own.add({ name: name.toLowerCase(), secret: key, algorithm: DEFAULT_TSIG_ALGORITHM });
    for (const { file } of this.#config.secrets) await this.#readFile(file);
    for (const { label } of this.#site.block.listeners()) {
      let ring = this.#ofListeners.get(label);
      if (ring === undefined) {
        ring = new TsigKeyRing();
        this.#ofListeners.set(label, ring);
      }
      for (const key of this.#own.keys()) {
        if (!ring.add(key))
          this.#site.log.warning(
            `the key ${key.name} has another secret in another server block on ${label}: each block uses its own`,
          );
      }
    }
  }

  readonly handle: Handler = (query, next) => {
    if (query.depth > 0 || !this.#config.zones.contains(query.name)) return next(query);
    return query.root.isSigned ? this.#signed(query, next) : this.#unsigned(query, next);
  };

  readonly handleUpdate: Handler = this.handle;

  #unsigned(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (!this.#needsSignature(query.type) && !this.#opcodeNeedsSignature(query.opcode)) return next(query);
    query.trace?.note("must be signed, and is not");
    this.#queries.slot("missing").increment();
    return query.reply({ rcode: Rcode.REFUSED });
  }

  #signed(query: Query, next: Next): Outcome | Promise<Outcome> {
    const { root } = query;
    const listener = this.#ofListeners.get(query.listener.label);
    const keys: TsigKeySource = { get: (name) => this.#own.get(name) ?? listener?.get(name) };
    // A plugin may have changed a copy of the query: the signature covers the client's original octets.
    const verdict = verifyQuery(root.bytes, root.length, root.tsigOffset, keys, this.#now);
    if (verdict.kind === "malformed") {
      this.#queries.slot("malformed").increment();
      return query.reply({ rcode: Rcode.FORMERR });
    }
    query.addSeal(verdict.signer);
    if (verdict.kind === "refused") {
      const word = ERROR_WORDS.get(verdict.error) ?? "refused";
      query.trace?.note(`signature refused: ${word}`);
      this.#queries.slot(word).increment();
      return query.reply({ rcode: Rcode.NOTAUTH });
    }
    query.trace?.note(`signed with the key ${verdict.key.name}`);
    this.#queries.slot("verified").increment();
    root.signer = verdict.key.name;
    return next(query.derive({ unsigned: true }));
  }

  async #readFile(file: string): Promise<void> {
    try {
      for (const key of parseSecretsFile(await readTextFile(file))) {
        if (!this.#own.add(key))
          throw new SetupError(`${file}: the key ${key.name} has more than one secret`);
      }
    } catch (error) {
      if (error instanceof SecretsFileError) throw new SetupError(`${file}:${error.line}: ${error.message}`);
      if (error instanceof SetupError || !(error instanceof Error)) throw error;
      throw new SetupError(`cannot read the keys of 'secrets ${file}': ${fileFault(error)}`);
    }
  }
}

const ERROR_WORDS: ReadonlyMap<number, string> = new Map([
  [BADSIG, "badsig"],
  [Rcode.BADKEY, "badkey"],
  [Rcode.BADTIME, "badtime"],
  [Rcode.BADTRUNC, "badtrunc"],
]);
