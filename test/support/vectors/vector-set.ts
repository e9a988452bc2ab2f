/**
 * Questions and answers recorded from CoreDNS 1.14.7. Fixtures are JSON lines, a set a line; what is usual is left out of them: class IN,
 * the flag RD, no EDNS, UDP, the client 127.0.0.1, sections without records.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../portolan.ts";

/** One server, started once, and what is asked of it in order. */
export interface VectorSet {
  readonly id: string;
  /** The plugin that it is about; sets of `zones/` do not say. */
  readonly plugin?: string;
  readonly note?: string;
  /** With the placeholders `{{port}}`, `{{port2}}`, ..., `{{upstream}}` and `{{dir}}`. */
  readonly corefile: string;
  /** Files to be written into `{{dir}}`, with the same placeholders. */
  readonly files?: Readonly<Record<string, string>>;
  /** Base64. */
  readonly files_base64?: Readonly<Record<string, string>>;
  readonly upstream?: UpstreamScript;
  readonly cases?: readonly VectorCase[];
  /** The set asks only whether the server starts. */
  readonly config?: { readonly starts: boolean };
}

/**
 * The answers of the server behind `{{upstream}}`: replies by "name type", else records, else (`echo`) nothing with
 * NOERROR.
 */
export interface UpstreamScript {
  readonly echo?: boolean;
  /** One record a line. */
  readonly records?: string;
  readonly replies?: Readonly<Record<string, ScriptedReply>>;
}

export interface ScriptedReply {
  readonly rcode?: string;
  /** Header bits in place of RA; RD is copied from the query. */
  readonly flags?: string;
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly additional?: readonly string[];
}

export interface VectorCase {
  readonly query: VectorQuery;
  /** One for each time that the query is sent. */
  readonly replies: readonly VectorReply[];
  readonly repeat?: number;
  /** Milliseconds of the server's time between repetitions, and before the case. */
  readonly gap_ms?: number;
  readonly wait_ms?: number;
  /** There is a cache: a TTL may be one second off. */
  readonly ttl_counts_down?: boolean;
}

export interface VectorQuery {
  readonly name: string;
  readonly type: string;
  readonly class?: string;
  /** Header bits: "RD CD". */
  readonly flags?: string;
  readonly edns?: VectorEdns | null;
  readonly transport?: "udp" | "tcp";
  /** Source address. */
  readonly client?: string;
  readonly id?: number;
  readonly opcode?: string;
  /** Octets in front of the datagram, or at the start of the connection. */
  readonly proxy?: { readonly hex: string };
  /** Cases with the same word share one UDP socket. */
  readonly socket?: string;
  /** The octets of `proxy` are sent, and no DNS message. */
  readonly header_only?: boolean;
}

export interface VectorEdns {
  readonly version: number;
  readonly size: number;
  readonly do: boolean;
  readonly options: readonly VectorOption[];
}

/** An option as octets, or an extended error. */
export type VectorOption =
  | { readonly code: number; readonly hex: string }
  | { readonly code: 15; readonly ede: number; readonly text: string };

export interface VectorAnswer {
  readonly rcode: string;
  readonly flags: string;
  readonly opcode?: string;
  readonly question: readonly string[];
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly additional?: readonly string[];
  readonly edns?: VectorEdns | null;
  /** The queries that the upstream got because of the query, in order. */
  readonly upstream_saw?: readonly VectorQuery[];
}

export type VectorReply =
  | "none"
  | { readonly none: true; readonly upstream_saw?: readonly VectorQuery[] }
  | { readonly unparsed: string }
  | VectorAnswer;

const folder = join(projectRoot, "test", "fixtures", "vectors");

/** The sets of `test/fixtures/vectors/<file>`, such as `shaping/acl.jsonl`. */
export function readVectorSets(file: string): VectorSet[] {
  return readLines<VectorSet>(file);
}

/** The values of a file with one in each line. */
export function readLines<T>(file: string): T[] {
  const text = readFileSync(join(folder, file), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): T => JSON.parse(line));
}

/**
 * Where this server differs on purpose: the reason by "set" (the whole set), "set 3" (its third case, from 1). The file is
 * `test/fixtures/vectors/<file>`, such as `shaping/differences/acl.json`; no file, no difference.
 */
export function readDifferences(file: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = readFileSync(join(folder, file), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Map();
    throw error;
  }
  const reasons: Record<string, string[]> = JSON.parse(text);
  return new Map(
    Object.entries(reasons).flatMap(([reason, ids]) => ids.map((id): [string, string] => [id, reason])),
  );
}
