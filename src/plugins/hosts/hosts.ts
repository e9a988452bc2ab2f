import { stat } from "node:fs/promises";
import {
  A,
  AAAA,
  addressOfReverseName,
  EncodedSections,
  Name,
  PTR,
  RecordType,
  type ResourceRecord,
} from "../../dns/index.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { FileWatch } from "../../lib/files/file-watch.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import {
  type GaugeSlot,
  type Handler,
  type Next,
  type Outcome,
  type PluginInstance,
  type Query,
  SetupError,
  type Site,
} from "../../plugin/index.ts";
import type { HostsConfig } from "./config.ts";
import { distinct, type HostEntry, HostTable, type PreparedAnswer } from "./host-table.ts";
import { type HostsLine, parseHostsLine, readHostsFile } from "./hosts-file.ts";

/** The question's name follows the header. */
const NAME_START = 12;

/** More records than fit into any message. */
const MAX_RECORDS = 5_000;

/** Bound for the answers cached in encoded form; others are encoded for each query. */
const MAX_PREPARED = 10_000;

/** A shorter interval would keep the server busy reading. Milliseconds. */
const SHORTEST_RELOAD = 100;

export class Hosts implements PluginInstance {
  readonly #config: HostsConfig;
  readonly #site: Site;
  readonly #path: string;
  readonly #inline: readonly HostsLine[];
  readonly #everythingFallsThrough: boolean;
  readonly #entries: GaugeSlot;
  readonly #reloadTime: GaugeSlot;
  #table = new HostTable();
  #prepared = 0;
  #loads = 0;
  #watch: FileWatch | undefined;
  /** Why the file cannot be read at present; empty if it can. */
  #fault = "";

  constructor(config: HostsConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#path = site.resolvePath(config.file);
    this.#inline = config.inline.flatMap((line) => parseHostsLine(line) ?? []);
    this.#everythingFallsThrough = config.fallthrough.zones.zones.some((zone) => zone.isRoot);
    this.#entries = site.metrics
      .gauge({
        name: "coredns_hosts_entries",
        help: "Addresses of names and names of addresses, from the file and the Corefile.",
        labels: ["hostsfile"],
      })
      .slot(this.#path);
    this.#reloadTime = site.metrics
      .gauge({
        name: "coredns_hosts_reload_timestamp_seconds",
        help: "Time of the last reload of the hosts file, in seconds since 1970.",
      })
      .slot();
  }

  async examine(): Promise<void> {
    if (!(await this.#checkAccess())) this.#site.log.warning(missingFile(this.#path));
  }

  async start(): Promise<void> {
    await this.#checkAccess();
    const { reload } = this.#config;
    const { clock, log } = this.#site;
    this.#watch = new FileWatch({
      paths: [this.#path],
      intervalMs: Math.max(reload, SHORTEST_RELOAD),
      clock,
      onChange: ([change]) => {
        if (change?.content !== undefined) this.#fault = "";
        return this.#load(change?.content);
      },
      onError: (error) => {
        this.#fault = describeReadError(error, this.#path);
        log.warning(this.#fault);
      },
    });
    const contents = await this.#watch.start();
    if (reload === 0) this.#watch.stop();
    await this.#load(contents.get(this.#path));
  }

  stop(): void {
    this.#watch?.stop();
  }

  faults(): readonly PluginFault[] {
    return this.#fault === "" ? [] : [{ subject: this.#path, reason: this.#fault }];
  }

  readonly handle: Handler = (query, next) => {
    if (query.type === RecordType.PTR) return this.#answerReverse(query, next);
    const entry = this.#table.find(query.bytes, NAME_START, query.nameEnd);
    const wildcard = this.#table.findWildcard(query.bytes, NAME_START, query.nameEnd);
    // Names in the table are in the zones, so only other names have to be compared with the zones.
    if (entry === undefined && wildcard === undefined) return this.#passOn(query, next);
    if (query.type === RecordType.A) return this.#answerIpv4(query, entry, wildcard);
    if (query.type === RecordType.AAAA) return this.#answerIpv6(query, entry, wildcard);
    if (this.#config.fallthrough_unsupported && this.#config.fallthrough.permits(query.name)) {
      query.trace?.note("the name is in the hosts file, but has no records of this type: falls through");
      return next(query);
    }
    return answerEmpty(query);
  };

  #passOn(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (this.#everythingFallsThrough || this.#config.zones.matchQuery(query) === undefined) {
      query.trace?.note("the name is not in the hosts file");
      return next(query);
    }
    if (this.#config.fallthrough.permits(query.name)) {
      query.trace?.note("the name is not in the hosts file: falls through");
      return next(query);
    }
    query.trace?.note("the name is not in the hosts file, and may not fall through");
    return query.fail();
  }

  #answerIpv4(query: Query, entry: HostEntry | undefined, wildcard: HostEntry | undefined): Outcome {
    if (entry === undefined || entry.ipv4.length === 0) return this.#answerWildcard(query, wildcard?.ipv4);
    query.trace?.note("the name is in the hosts file");
    if (entry.preparedIpv4 !== undefined) return answerPrepared(query, entry.preparedIpv4);
    const prepared = encodeAnswer(query, this.#addressRecords(query, entry.ipv4));
    if (this.#mayKeep()) entry.preparedIpv4 = prepared;
    return answerPrepared(query, prepared);
  }

  #answerIpv6(query: Query, entry: HostEntry | undefined, wildcard: HostEntry | undefined): Outcome {
    if (entry === undefined || entry.ipv6.length === 0) return this.#answerWildcard(query, wildcard?.ipv6);
    query.trace?.note("the name is in the hosts file");
    if (entry.preparedIpv6 !== undefined) return answerPrepared(query, entry.preparedIpv6);
    const prepared = encodeAnswer(query, this.#addressRecords(query, entry.ipv6));
    if (this.#mayKeep()) entry.preparedIpv6 = prepared;
    return answerPrepared(query, prepared);
  }

  /** Addresses of a wildcard replace missing addresses of the name itself, for each family separately. */
  #answerWildcard(query: Query, addresses: readonly string[] | undefined): Outcome {
    if (addresses === undefined || addresses.length === 0) return answerEmpty(query);
    query.trace?.note("the name matches a wildcard of the hosts file");
    return query.reply({ authoritative: true, answer: this.#addressRecords(query, addresses) });
  }

  #answerReverse(query: Query, next: Next): Outcome | Promise<Outcome> {
    const address = addressOfReverseName(query.name);
    const entry = address === undefined ? undefined : this.#table.findAddress(address);
    if (entry === undefined) {
      query.trace?.note("the address is not in the hosts file");
      return next(query);
    }
    query.trace?.note("the address is in the hosts file");
    if (entry.prepared !== undefined) return answerPrepared(query, entry.prepared);
    const records = entry
      .names(MAX_RECORDS)
      .map((target) => PTR.create(query.name, this.#config.ttl, { target }));
    const prepared = encodeAnswer(query, records);
    if (this.#mayKeep()) entry.prepared = prepared;
    return answerPrepared(query, prepared);
  }

  #mayKeep(): boolean {
    this.#prepared++;
    return this.#prepared <= MAX_PREPARED;
  }

  #addressRecords(query: Query, addresses: readonly string[]): ResourceRecord[] {
    const { name } = query;
    const kind = query.type === RecordType.A ? A : AAAA;
    return distinct(addresses, MAX_RECORDS).map((address) =>
      kind.create(name, this.#config.ttl, { address }),
    );
  }

  /** @param content of the file; without it only the lines of the Corefile count */
  async #load(content: Uint8Array | undefined): Promise<void> {
    const turn = ++this.#loads;
    const table = new HostTable();
    const take = (line: HostsLine): void => this.#addLine(table, line);
    if (content?.includes(0))
      this.#site.log.warning(`Hosts file contains NUL octets and is not text: ${this.#path}`);
    if (content !== undefined) await readHostsFile(content, take);
    // Parsing a large file takes several turns, and the file may have changed again.
    if (turn !== this.#loads) return;
    for (const line of this.#inline) take(line);
    this.#table = table;
    this.#prepared = 0;
    this.#entries.set(table.size);
    if (content !== undefined) this.#reloadTime.set(this.#site.clock.wallTime() / 1000);
    this.#site.log.debug(`Parsed hosts file into ${table.size} entries`);
  }

  #addLine(table: HostTable, { octets, names }: HostsLine): void {
    for (const text of names) {
      const name = Name.tryParse(text);
      if (name === undefined || !this.#config.zones.contains(name)) continue;
      table.add(name, octets, !this.#config.no_reverse);
    }
  }

  /** @returns whether the file exists: a missing file may be created later */
  async #checkAccess(): Promise<boolean> {
    try {
      await stat(this.#path);
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw new SetupError(
        `unable to access hosts file '${this.#path}': ${fileFault(error)}; name a readable file, or no file`,
      );
    }
  }
}

function encodeAnswer(query: Query, answer: readonly ResourceRecord[]): PreparedAnswer {
  const sections = { answer, authority: [], additional: [] };
  const { encoded, complete } = EncodedSections.encode(query.question, sections);
  const { start, end, answerCount, recordStarts, typeOffsets } = encoded;
  // A copy, because it may be cached: other messages share a buffer of some kilobytes.
  const bytes = new Uint8Array(encoded.bytes);
  const counts = [answerCount, 0, 0] as const;
  return {
    encoded: EncodedSections.of({ bytes, start, end, counts, recordStarts, typeOffsets }),
    truncated: !complete,
  };
}

function answerPrepared(query: Query, { encoded, truncated }: PreparedAnswer): Outcome {
  return query.reply({ authoritative: true, truncated, encoded });
}

/** The name exists without records of the type. A hosts file has no SOA record for a negative answer. */
function answerEmpty(query: Query): Outcome {
  query.trace?.note("the name is in the hosts file, but has no records of this type");
  return query.reply({ authoritative: true, encoded: EncodedSections.empty(query.questionEnd) });
}

function describeReadError(error: unknown, path: string): string {
  if (isMissing(error)) return missingFile(path);
  return `Hosts file cannot be read: ${fileFault(error)}`;
}

function missingFile(path: string): string {
  return `File does not exist: ${path}`;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
