/** Converts server addresses from the configurations of old programs to the form of `forward`. */

import { lookup } from "node:dns/promises";
import { encodeMessage, makeQuery } from "../dns/message.ts";
import { Name } from "../dns/name.ts";
import { Flag, RecordClass } from "../dns/numbers.ts";
import { A } from "../dns/record-table.ts";
import { RecordType } from "../dns/type-names.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { messageOf } from "../lib/text/message-of.ts";
import type { Clock } from "../lib/time/clock.ts";
import { askOnceWith } from "./ask-once.ts";

/** The addresses of a host, best first. Rejects if the host has no address. */
export type HostResolver = (host: string) => Promise<readonly string[]>;

export const systemResolver: HostResolver = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/** Splits `ip`, `ip:port` or `[ip6]:port`; `undefined` for any other text. */
export function splitServer(text: string): { readonly address: string; readonly port: string } | undefined {
  if (parseIpAddress(text) !== undefined) return { address: text, port: "" };
  const [, bracketed, plain, port = ""] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  return parseIpAddress(address) === undefined || Number(port) > MAX_PORT ? undefined : { address, port };
}

const MAX_PORT = 65_535;

/** In the form of `forward`: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`. */
export function forwardAddress({
  address,
  port,
}: {
  readonly address: string;
  readonly port: string;
}): string {
  // dnsmasq and kube-dns read port 0 as no port.
  if (port === "" || Number(port) === 0) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * All servers as addresses; host names are looked up.
 * @param failed called for a name without an address; it is left out
 */
export async function resolveServers(
  servers: readonly string[],
  resolve: HostResolver,
  failed: (host: string, reason: string) => void,
): Promise<string[]> {
  const addresses: string[] = [];
  for (const text of servers) {
    const split = splitServer(text);
    if (split !== undefined) {
      addresses.push(forwardAddress(split));
      continue;
    }
    try {
      const [address] = await resolve(text);
      if (address !== undefined) addresses.push(address);
    } catch (error) {
      failed(text, messageOf(error));
    }
  }
  return addresses;
}

/** Queries one server for the IPv4 addresses of a host. */
export function resolverThrough(server: string, clock: Clock): HostResolver {
  const ask = askOnceWith(clock);
  return async (host) => {
    const { address, port } = splitServer(server) ?? { address: server, port: "" };
    const name = Name.parse(host.endsWith(".") ? host : `${host}.`);
    const id = Math.floor(clock.wallTime()) & 0xffff;
    const query = encodeMessage(
      makeQuery({ name, type: RecordType.A, class: RecordClass.IN }, { id, flags: Flag.RD }),
    );
    const { answer } = await ask({ host: address, port: Number(port) || 53 }, query, RESOLVE_MS);
    const addresses = answer.flatMap((record) => (A.is(record) ? [record.data.address] : []));
    if (addresses.length === 0) throw new Error(`${host} has no address`);
    return addresses;
  };
}

const RESOLVE_MS = 2_000;
