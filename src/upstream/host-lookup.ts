/** Addresses of a host by name, for upstreams that are given by name. Used once, at setup. */

import { lookup } from "node:dns/promises";
import { EncodedSections } from "../dns/encoded-sections.ts";
import { encodeMessage, makeQuery } from "../dns/message.ts";
import type { Name } from "../dns/name.ts";
import { Rcode, rcodeName } from "../dns/numbers.ts";
import { octetAt } from "../dns/octets.ts";
import { A, AAAA } from "../dns/record-table.ts";
import { RecordType, recordTypeName } from "../dns/type-names.ts";
import { messageOf } from "../lib/text/message-of.ts";
import type { Exchange } from "./exchange/exchange.ts";
import { exchangeOnce } from "./exchange-once.ts";

/** IPv4 addresses first, then IPv6. Rejects if the host has no address. */
export type HostLookup = (host: Name) => Promise<string[]>;

/** Milliseconds for one server's answer. */
export const LOOKUP_TIMEOUT = 2_000;

/** Uses the resolver of this machine, including files such as /etc/hosts. */
export const systemLookup: HostLookup = async (host) => {
  const name = host.toString().replace(/\.$/, "");
  try {
    const found = await lookup(name, { all: true, order: "ipv4first" });
    return found.map(({ address }) => address);
  } catch (error) {
    throw new Error(lookupFault(error), { cause: error });
  }
};

/** The error of the C library's resolver, in words. */
function lookupFault(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOTFOUND") return "no such host";
  if (code === "EAI_AGAIN") return "the resolver of this machine does not answer";
  return messageOf(error);
}

/** Queries the given servers one after the other until one has a usable answer. */
export function lookupThrough(servers: readonly Exchange[]): HostLookup {
  return async (host) => {
    const addresses: string[] = [];
    const faults: string[] = [];
    for (const type of [RecordType.A, RecordType.AAAA]) {
      const found = await askInTurn(servers, host, type);
      if (found instanceof Error) faults.push(`${recordTypeName(type)}: ${found.message}`);
      else addresses.push(...found);
    }
    if (addresses.length > 0) return addresses;
    throw new Error(faults.length > 0 ? faults.join("; ") : "the name has no addresses");
  };
}

async function askInTurn(servers: readonly Exchange[], host: Name, type: number): Promise<string[] | Error> {
  let fault = new Error("no server to ask");
  for (const server of servers) {
    try {
      return await ask(server, host, type);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      fault = error;
    }
  }
  return fault;
}

async function ask(server: Exchange, host: Name, type: number): Promise<string[]> {
  const query = encodeMessage(makeQuery({ name: host, type }));
  return readAddresses(await exchangeOnce(server, query, query.length, LOOKUP_TIMEOUT));
}

function readAddresses(reply: Uint8Array): string[] {
  const rcode = octetAt(reply, 3) & 0xf;
  if (rcode !== Rcode.NOERROR) throw new Error(`the server answered ${rcodeName(rcode)}`);
  const { encoded } = EncodedSections.scan(reply, reply.length, true);
  const addresses: string[] = [];
  for (let index = 0; index < encoded.answerCount; index++) {
    const record = encoded.recordAt(index);
    if (A.is(record) || AAAA.is(record)) addresses.push(record.data.address);
  }
  return addresses;
}
