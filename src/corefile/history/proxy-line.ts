/** Converts the `proxy` of CoreDNS before 1.5.0 (docs/spec/kube-dns.md#old-corefiles). */
import type { Token } from "../tokens.ts";
import type { Directive } from "../tree.ts";
import { type CorefileLine, line, type Word } from "./line.ts";

export interface TodaysLine {
  readonly line: CorefileLine;
  /** The old words without a counterpart, with the consequences. */
  readonly losses: readonly string[];
}

/** Returns the text of a file; `undefined` if it cannot be read. */
export type ReadFileText = (path: string) => string | undefined;

/** Google's resolvers, the default of `https_google`. */
const GOOGLE = ["8.8.8.8", "8.8.4.4"];

/** `forward`, or `grpc` for gRPC upstreams. */
export function todaysProxy(proxy: Directive, readFile: ReadFileText): TodaysLine {
  const losses: string[] = [];
  const options: CorefileLine[] = [];
  const [from = ".", ...to] = proxy.args;
  let protocol: Directive | undefined;
  for (const option of proxy.block ?? []) {
    const { name, args } = option;
    switch (name.text) {
      case "except":
        options.push(line([name, ...args]));
        break;
      case "policy":
        options.push(...policy(option, losses));
        break;
      case "max_fails":
        options.push(line([name, ...args]));
        break;
      case "health_check":
        options.push(...healthCheck(option, losses));
        break;
      case "fail_timeout":
        losses.push("'fail_timeout' has no counterpart: an upstream that failed is probed until it answers");
        break;
      case "spray":
        losses.push("'spray' is the default of 'forward' while all upstreams are down");
        break;
      case "protocol":
        protocol = option;
        break;
      default:
        // The new plugin will report unknown options.
        options.push(line([name, ...args]));
    }
  }
  const [word, ...rest] = protocol?.args ?? [];
  if (word?.text === "grpc") return grpc([from, ...to], options, rest, readFile, losses);
  if (word?.text === "https_google") return google(from, options, rest, losses);
  if (rest.some(({ text }) => text === "force_tcp")) options.push(line(["force_tcp"]));
  return { line: line(["forward", from, ...to], options), losses };
}

function policy({ args }: Directive, losses: string[]): CorefileLine[] {
  const [word] = args;
  switch (word?.text) {
    case "first":
      return [line(["policy", "sequential"])];
    case "least_conn":
      losses.push(
        "'policy least_conn' has no counterpart: upstreams are chosen at random, as without a policy",
      );
      return [];
    default:
      return [line(["policy", ...args])];
  }
}

/** Probes were HTTP requests. Now they are DNS queries and need no path. */
function healthCheck({ args }: Directive, losses: string[]): CorefileLine[] {
  const [, interval] = args;
  losses.push(
    `'health_check ${args[0]?.text ?? ""}' was an HTTP request: upstreams are probed with DNS queries`,
  );
  return interval === undefined ? [] : [line(["health_check", interval])];
}

function grpc(
  words: readonly Word[],
  options: readonly CorefileLine[],
  tls: readonly Token[],
  readFile: ReadFileText,
  losses: string[],
): TodaysLine {
  const known = options.filter(({ words: [name] }) => {
    const text = typeof name === "string" ? name : name?.text;
    if (text === "except" || text === "policy") return true;
    losses.push(`'${text}' has no counterpart in 'grpc'`);
    return false;
  });
  const [first, second, ...more] = tls;
  if (first?.text === "insecure") return { line: line(["grpc", ...words], known), losses };
  // The manual had the key before the certificate, the program after it.
  const isKeyFirst = second !== undefined && /PRIVATE KEY/.test(readFile(first?.text ?? "") ?? "");
  const files = isKeyFirst && first !== undefined ? [second, first, ...more] : tls;
  return { line: line(["grpc", ...words], [...known, line(["tls", ...files])]), losses };
}

function google(
  from: Word,
  options: readonly CorefileLine[],
  words: readonly Token[],
  losses: string[],
): TodaysLine {
  losses.push(
    "'https_google' used an API of its own that no longer exists: the same resolvers are queried over TLS",
  );
  const addresses = words[0]?.text === "bootstrap" ? words.slice(1).map(({ text }) => text) : GOOGLE;
  const upstreams = addresses.map((address) => `tls://${address.replace(/:\d+$/, "")}`);
  return {
    line: line(["forward", from, ...upstreams], [...options, line(["tls_servername", "dns.google"])]),
    losses,
  };
}
