/** Results of the two small languages, recorded from expr-lang 1.17.8 and Go 1.26 as CoreDNS 1.14.7 uses them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeMessage } from "../../../src/dns/message.ts";
import { Name } from "../../../src/dns/name.ts";
import { Flag } from "../../../src/dns/numbers.ts";
import {
  Callable,
  type ExpressionValue,
  Float,
  isInteger,
  isList,
} from "../../../src/expression/values/values.ts";
import { parseScopedIpAddress } from "../../../src/lib/net/ip-address.ts";
import { type Endpoint, FixedEndpoint } from "../../../src/plugin/message/endpoint.ts";
import { Query } from "../../../src/plugin/query/query.ts";
import { projectRoot } from "../portolan.ts";

export interface ExpressionVector {
  readonly id: string;
  readonly cat: string;
  /** Of `environments.json`; `udp4` unless given. */
  readonly env?: string;
  /** `template` has `group()` as well; `view` unless given. */
  readonly lang?: string;
  /** Name and expression, evaluated before, in order. */
  readonly vars?: readonly (readonly [string, string])[];
  readonly expr: string;
  readonly static?: string;
  readonly result?: EncodedValue;
  readonly error?: "compile" | "runtime";
}

export interface TemplateVector {
  readonly id: string;
  readonly cat: string;
  readonly env?: string;
  readonly vars?: readonly (readonly [string, string])[];
  readonly template: string;
  readonly output?: string;
  readonly output_b64?: string;
  /** "parse LINE", "exec LINE:COLUMN": the column in octets, from 0. */
  readonly error?: string;
}

export interface EncodedValue {
  readonly t: string;
  readonly v?: unknown;
  readonly b64?: string;
  readonly len?: number;
}

interface RecordedRequest {
  readonly transport: "udp" | "tcp";
  readonly client_address: string;
  readonly server_address: string;
  readonly question_name: string;
  readonly question_type: number;
  readonly question_class: number;
  readonly id_field: number;
  readonly opcode: number;
  readonly recursion_desired: boolean;
  readonly edns: { readonly udp_size: number; readonly do: boolean } | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly regex: string;
  readonly template_zones: readonly string[];
}

export interface RecordedEnvironment {
  readonly query: Query;
  readonly regex: string;
  readonly zone: string;
}

export function readEnvironments(): ReadonlyMap<string, RecordedEnvironment> {
  const path = join(projectRoot, "test", "fixtures", "vectors", "languages", "environments.json");
  const recorded: { id: string; request: RecordedRequest }[] = JSON.parse(readFileSync(path, "utf8"));
  return new Map(
    recorded.map(({ id, request }) => [
      id,
      { query: queryOf(request), regex: request.regex, zone: request.template_zones[0] ?? "." },
    ]),
  );
}

function queryOf(request: RecordedRequest): Query {
  const bytes = encodeMessage({
    id: request.id_field,
    flags: request.recursion_desired ? Flag.RD : 0,
    opcode: request.opcode,
    rcode: 0,
    questions: [
      { name: Name.parse(request.question_name), type: request.question_type, class: request.question_class },
    ],
    answer: [],
    authority: [],
    additional: [],
    edns:
      request.edns === null
        ? undefined
        : { udpSize: request.edns.udp_size, version: 0, dnssecOk: request.edns.do, options: [] },
  });
  const query = Query.read(bytes, bytes.length, {
    listener: { label: "dns://:53", echoedOptions: new Set(), resolve: (inner) => inner.fail() },
    transport: request.transport,
    client: endpointOf(request.client_address),
    local: endpointOf(request.server_address),
    receivedAt: 0,
  });
  if (query === undefined) throw new Error("the recorded query does not parse");
  if (request.metadata !== null) query.metadata = new Map(Object.entries(request.metadata));
  return query;
}

function endpointOf(text: string): Endpoint {
  const [, bracketed, plain = "", port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  const address = (bracketed ?? plain).replace(/%.*$/, "");
  const scoped = parseScopedIpAddress(address);
  if (scoped === undefined) throw new Error(`not an address: ${text}`);
  return new FixedEndpoint(address, Number(port), scoped.octets);
}

/** A value as the vectors write it, without the types of Go. */
export function encodeValue(value: ExpressionValue): EncodedValue {
  if (value === null) return { t: "nil" };
  if (typeof value === "boolean") return { t: "bool", v: value };
  if (isInteger(value)) return { t: "int", v: typeof value === "bigint" ? String(value) : value };
  if (typeof value === "string") return { t: "string", v: value };
  if (value instanceof Float) return { t: "float", v: encodeFloat(value.value) };
  if (value instanceof Uint8Array) return { t: "bytes", b64: Buffer.from(value).toString("base64") };
  if (value instanceof Callable) return { t: "func" };
  if (!isList(value)) {
    const entries = [...value].map(([key, item]) => [{ t: "string", v: key }, encodeValue(item)]);
    return {
      t: "map",
      v: entries.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)),
    };
  }
  if (value.length > 5_000) return { t: "array", len: value.length };
  return { t: "array", v: value.map(encodeValue) };
}

function encodeFloat(value: number): number | string {
  if (Number.isNaN(value)) return "NaN";
  if (Object.is(value, -0)) return "-0";
  return Number.isFinite(value) ? value : value > 0 ? "+Inf" : "-Inf";
}

/** A recorded value without the types of Go; entries of maps sorted by key. */
export function withoutTypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTypes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== "go")
      .map(([key, item]) => [key, withoutTypes(item)]),
  );
}
