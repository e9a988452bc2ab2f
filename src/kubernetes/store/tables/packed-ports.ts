/** Ports among octets, each: protocol (1), number (2), octets of the name (1), name. Numbers have their most significant octet first. */
import { readU16, writeU16 } from "../../../dns/octets.ts";
import type { Port, Protocol } from "../../objects/objects.ts";
import { readText } from "./short-text.ts";

const HEAD = 4;
const PROTOCOLS: readonly Protocol[] = ["tcp", "udp", "sctp"];

/** The longest text with its length in one octet. */
export const MAX_SHORT_TEXT = 255;

/** How many octets ports take; `undefined` where a name is too long. */
export function portOctets(ports: readonly Port[]): number | undefined {
  let octets = 0;
  for (const { name } of ports) {
    const length = Buffer.byteLength(name);
    if (length > MAX_SHORT_TEXT) return undefined;
    octets += HEAD + length;
  }
  return octets;
}

/** @returns where they end */
export function writePorts(octets: Buffer, ports: readonly Port[], start: number): number {
  let at = start;
  for (const { name, number, protocol } of ports) {
    octets[at] = PROTOCOLS.indexOf(protocol);
    writeU16(octets, at + 1, number);
    at = writeShortText(octets, name, at + 3);
  }
  return at;
}

export function readPorts(octets: Buffer, start: number, end: number): Port[] {
  const ports: Port[] = [];
  for (let at = start; at < end; ) {
    const behind = at + HEAD + (octets[at + 3] ?? 0);
    ports.push({
      name: readText(octets, at + HEAD, behind),
      number: readU16(octets, at + 1),
      protocol: PROTOCOLS[octets[at] ?? 0] ?? "tcp",
    });
    at = behind;
  }
  return ports;
}

/** The octets of a text behind their number, which is one octet. @returns where they end */
export function writeShortText(octets: Buffer, text: string, at: number): number {
  const length = text === "" ? 0 : octets.write(text, at + 1, "utf8");
  octets[at] = length;
  return at + 1 + length;
}
