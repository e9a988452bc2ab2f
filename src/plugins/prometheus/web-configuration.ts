/**
 * HTTPS and passwords for the metrics, from a web configuration file of Prometheus' exporters: certificate, key, and
 * accepted clients. Loaded for a Corefile that names such a file.
 */

import { dirname, resolve } from "node:path";
import type { SecureVersion } from "node:tls";
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import type { ClientAuthentication, ServerIdentity } from "../../lib/files/server-identity.ts";
import { list, record, string } from "../../lib/net/http-client.ts";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { checkKeyPair } from "../../lib/net/key-pair.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import type { Users } from "./basic-auth.ts";
import type { RateLimitSettings } from "./rate-limit.ts";

/** The values of the files, and those of `tls`. */
const CLIENT_AUTHENTICATION: Readonly<Record<string, ClientAuthentication>> = {
  NoClientCert: "nocert",
  RequestClientCert: "request",
  RequireAnyClientCert: "require",
  VerifyClientCertIfGiven: "verify_if_given",
  RequireAndVerifyClientCert: "require_and_verify",
};
const VERSIONS: Readonly<Record<string, SecureVersion>> = { TLS12: "TLSv1.2", TLS13: "TLSv1.3" };
const TLS_OPTIONS = [
  "cert_file",
  "key_file",
  "cert",
  "key",
  "client_auth_type",
  "client_ca_file",
  "client_ca",
  "min_version",
  "max_version",
];
/** They choose between equally good algorithms. */
const WITHOUT_EFFECT = ["cipher_suites", "prefer_server_cipher_suites", "curve_preferences"];

export interface WebConfiguration {
  /** Undefined if the file configures plain HTTP. */
  readonly identity: ServerIdentity | undefined;
  /** Headers for every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Without users no password is required. */
  readonly users: Users;
  readonly rateLimit: RateLimitSettings | undefined;
  /** The file, and the files that it names. */
  readonly files: readonly string[];
}

const SECTIONS = ["tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"];

/** @throws Error with the fault and the file */
export async function readWebConfiguration(path: string): Promise<WebConfiguration> {
  const lines = new LineCounter();
  const document = parseDocument(await readTextFile(path), { lineCounter: lines });
  const [fault] = document.errors;
  if (fault !== undefined) throw new Error(`${path}: ${fault.message.split("\n", 1)[0]}`);
  const all = record(document.toJS({ maxAliasCount: 0 }));
  refuseOthers(path, "", all, SECTIONS);
  const http = record(all.http_server_config);
  refuseOthers(path, "http_server_config.", http, ["http2", "headers"]);
  const headers = Object.fromEntries(
    Object.entries(record(http.headers)).map(([name, value]) => [name, string(value)]),
  );
  const users = readUsers(path, document, lines);
  const rateLimit = readRateLimit(path, record(all.rate_limit));
  const common = { headers, users, rateLimit };
  if (all.tls_server_config === undefined) return { ...common, identity: undefined, files: [path] };
  const { identity, files } = await readIdentity(path, record(all.tls_server_config));
  return { ...common, identity, files: [path, ...files] };
}

function readRateLimit(
  path: string,
  options: Readonly<Record<string, unknown>>,
): RateLimitSettings | undefined {
  refuseOthers(path, "rate_limit.", options, ["interval", "burst"]);
  const { interval = 0, burst = 0 } = options;
  // A bare number is in nanoseconds, as in Go.
  const time = typeof interval === "number" ? interval / 1e6 : parseGoDuration(string(interval));
  if (time === undefined || !(time >= 0))
    throw new Error(`${path}: 'rate_limit.interval' is not a duration such as 1s`);
  if (time === 0) return undefined;
  if (typeof burst !== "number" || !Number.isInteger(burst) || burst < 1)
    throw new Error(
      `${path}: 'rate_limit.burst' is not a whole number of 1 or more: no request would be allowed`,
    );
  return { interval: time, burst };
}

/**
 * Modular crypt format: cost, 16 octets of salt and 23 of hash, in bcrypt's base64, where the last character of a
 * salt has two bits.
 */
const BCRYPT_HASH = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}$/;
/** Each step doubles the time; this cost takes about a second. */
const MAX_COST = 14;
const MIN_COST = 4;
const MAKE_ONE = "make one with `htpasswd -nBC 10 USER`";

/** Errors do not contain a hash, because they are logged. */
function readUsers(path: string, document: Document.Parsed, lines: LineCounter): Users {
  const found = document.get("basic_auth_users", true);
  const users = new Map<string, string>();
  if (found === undefined || (isScalar(found) && found.value === null)) return users;
  const at = (node: unknown): string =>
    `${path}:${lines.linePos((isNode(node) ? node.range?.[0] : undefined) ?? 0).line}`;
  if (!isMap(found))
    throw new Error(`${at(found)}: 'basic_auth_users' is not a map from users to bcrypt hashes`);
  for (const { key, value } of found.items) {
    const user = isScalar(key) ? (key.source ?? String(key.value)) : "";
    const hash = isScalar(value) && typeof value.value === "string" ? value.value : "";
    const cost = Number(BCRYPT_HASH.exec(hash)?.[1] ?? 0);
    if (cost < MIN_COST)
      throw new Error(`${at(key)}: the value of user '${user}' is not a bcrypt hash; ${MAKE_ONE}`);
    if (cost > MAX_COST)
      throw new Error(
        `${at(key)}: the bcrypt hash of user '${user}' has cost ${cost}, and comparing would take too long; the highest cost is ${MAX_COST}: ${MAKE_ONE}`,
      );
    users.set(user, hash);
  }
  return users;
}

async function readIdentity(
  path: string,
  options: Readonly<Record<string, unknown>>,
): Promise<{ readonly identity: ServerIdentity; readonly files: readonly string[] }> {
  const prefix = "tls_server_config.";
  refuseOthers(path, prefix, options, [...TLS_OPTIONS, ...WITHOUT_EFFECT, "client_allowed_sans"]);
  const files: string[] = [];
  const text = async (option: "cert" | "key" | "client_ca"): Promise<string | undefined> => {
    const file = string(options[`${option}_file`]);
    if (file === "") return string(options[option]) || undefined;
    if (string(options[option]) !== "")
      throw new Error(`${path}: '${prefix}${option}' and '${prefix}${option}_file' cannot be used together`);
    const found = resolve(dirname(path), file);
    files.push(found);
    return readTextFile(found);
  };
  const [cert, key, ca] = [await text("cert"), await text("key"), await text("client_ca")];
  for (const [name, value] of [["cert", cert] as const, ["key", key] as const])
    if (value === undefined) throw new Error(`${path}: '${prefix}${name}_file' is missing`);
  const clientAuthentication = oneOf(path, options, "client_auth_type", CLIENT_AUTHENTICATION) ?? "nocert";
  if (clientAuthentication.startsWith("ver") && ca === undefined)
    throw new Error(`${path}: '${prefix}client_ca_file' is missing: it names the CAs of client certificates`);
  const allowedNames = namesOf(path, options.client_allowed_sans);
  if (allowedNames !== undefined && !clientAuthentication.includes("verify"))
    throw new Error(
      `${path}: '${prefix}client_allowed_sans' needs 'client_auth_type: RequireAndVerifyClientCert': names in unverified certificates prove nothing`,
    );
  const context = {
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
    minVersion: oneOf(path, options, "min_version", VERSIONS) ?? "TLSv1.2",
    maxVersion: oneOf(path, options, "max_version", VERSIONS) ?? "TLSv1.3",
  };
  try {
    checkKeyPair(context);
  } catch (error) {
    throw new Error(`${path}: certificate and key: ${messageOf(error)}`);
  }
  return { identity: { context, clientAuthentication, allowedNames, keyLog: undefined }, files };
}

/** Addresses in the form of those in certificates. */
function namesOf(path: string, names: unknown): readonly string[] | undefined {
  if (names === undefined || names === null) return undefined;
  const found = list(names).map((name) => {
    const text = string(name);
    if (text === "") throw new Error(`${path}: 'client_allowed_sans' is not a list of names`);
    const octets = parseIpAddress(text);
    return octets === undefined ? text : formatIpAddress(octets);
  });
  if (found.length === 0 && !Array.isArray(names))
    throw new Error(`${path}: 'client_allowed_sans' is not a list of names`);
  return found.length === 0 ? undefined : found;
}

function oneOf<T>(
  path: string,
  options: Readonly<Record<string, unknown>>,
  name: string,
  values: Readonly<Record<string, T>>,
): T | undefined {
  const word = options[name];
  if (word === undefined || word === null) return undefined;
  const value = typeof word === "string" && Object.hasOwn(values, word) ? values[word] : undefined;
  if (value !== undefined) return value;
  throw new Error(
    `${path}: unknown '${name}: ${typeof word === "string" ? word : JSON.stringify(word)}'; expected one of ${Object.keys(values).join(", ")}`,
  );
}

function refuseOthers(
  path: string,
  prefix: string,
  options: Readonly<Record<string, unknown>>,
  known: readonly string[],
): void {
  const other = Object.keys(options).find((name) => !known.includes(name));
  if (other !== undefined) throw new Error(`${path}: unknown option '${prefix}${other}'`);
}
