/** Looks up a name in this server: without a socket, and without a mark in metrics and cache. */

import { RecordType } from "../dns/type-names.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { ExplainError } from "../plugin/contract/explanation.ts";
import type { ServerControl } from "../plugin/contract/site.ts";

/** Milliseconds. */
const PATIENCE = 1_500;

/** @returns addresses as text; empty if the server has none, or for an invalid name */
export async function lookUp(host: string, control: Pick<ServerControl, "explain">): Promise<string[]> {
  if (isIpAddress(host)) return [host];
  const name = host.endsWith(".") ? host : `${host}.`;
  const found = await Promise.all(
    [RecordType.A, RecordType.AAAA].map(async (type) => {
      try {
        const { message } = await control.explain({ name, type }, PATIENCE);
        // `a.example. 30 IN A 192.0.2.1`
        return (message?.answer ?? []).map((record) => record.split(/\s+/).at(-1) ?? "").filter(isIpAddress);
      } catch (error) {
        // There is no listener yet, or the name is not a domain name.
        if (error instanceof ExplainError) return [];
        throw error;
      }
    }),
  );
  return found.flat();
}

function isIpAddress(text: string): boolean {
  return parseIpAddress(text) !== undefined;
}
