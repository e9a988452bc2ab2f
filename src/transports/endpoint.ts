/** Endpoints as Node reports them. IPv4 clients of dual-stack sockets appear as IPv4. */
import { parseScopedIpAddress } from "../lib/net/ip-address.ts";
import { type Endpoint, FixedEndpoint } from "../plugin/message/endpoint.ts";

const MAPPED_PREFIX = "::ffff:";

/** An endpoint whose octets are made on demand. */
export class ReportedEndpoint implements Endpoint {
  readonly address: string;
  readonly port: number;
  readonly family: 4 | 6;

  constructor(address: string, port: number) {
    const mapped = address.startsWith(MAPPED_PREFIX) && address.includes(".");
    this.address = mapped ? address.slice(MAPPED_PREFIX.length) : withoutZone(address);
    this.port = port;
    this.family = this.address.includes(":") ? 6 : 4;
  }

  get octets(): Uint8Array {
    return parseScopedIpAddress(this.address)?.octets ?? new Uint8Array(this.family === 4 ? 4 : 16);
  }

  snapshot(): Endpoint {
    return this;
  }
}

function withoutZone(address: string): string {
  const zoneAt = address.indexOf("%");
  return zoneAt < 0 ? address : address.slice(0, zoneAt);
}

/** For the local side of a wildcard socket, of which only the port is known. */
export function unspecifiedEndpoint(port: number): Endpoint {
  return new FixedEndpoint("::", port, new Uint8Array(16));
}
