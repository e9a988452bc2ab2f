/** One update of a zone by each of the ways that a server block may be reached. */
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import type { PortOf } from "./free-ports.ts";
import { MESSAGE_WAYS } from "./message-transports.ts";
import { octetsOf, SECRET } from "./update-messages.ts";

const ZONE = "example.org.";

/** The zone by all of them, and another block on the same port that takes no updates. `cert.pem` and `key.pem` are the server's. */
export function updateTransports(port: PortOf): string {
  const keys = ["tls", "https", "https3", "grpc", "quic"].map(
    (scheme) => `${scheme}://${ZONE}:${port(scheme)}`,
  );
  return `${ZONE}:${port("dns")} ${keys.join(" ")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    tsig {
        secret all.example. ${SECRET}
    }
    dynupdate ${ZONE} {
        file db
        allow all.example. * *
    }
}
other.test:${port("dns")} {
    bind 127.0.0.1
    whoami
}
`;
}

function update(zone = ZONE): Uint8Array {
  return octetsOf({ title: "", updates: ["new 60 IN A 192.0.2.9"] }, zone);
}

type Way = (port: PortOf, authority: string) => Promise<string>;

const wordOf = (reply: Uint8Array | string): string =>
  typeof reply === "string" ? reply : rcodeName(decodeMessage(reply).rcode);

/** The rcode of the reply, or a word for a missing one. */
export const UPDATE_WAYS: Readonly<Record<string, Way>> = {
  ...Object.fromEntries(
    Object.entries(MESSAGE_WAYS).map(([name, way]): [string, Way] => [
      name,
      async (port, authority) => wordOf(await way(port, authority, update())),
    ]),
  ),
  "another block": async (port, authority) =>
    wordOf(await MESSAGE_WAYS.udp(port, authority, update("other.test."))),
};
