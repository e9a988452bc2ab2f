/** Connections of the load generators: plain, or over TLS as a client of DNS over TLS opens them. */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export type StreamTransport = "tcp" | "tls";

/** The event by which a connection says that it is open. */
export const OPEN_EVENT: Readonly<Record<StreamTransport, string>> = {
  tcp: "connect",
  tls: "secureConnect",
};

/** A new handshake each time: nothing is resumed. */
export function openStream(transport: StreamTransport, port: number): Socket {
  if (transport === "tcp") return connectTcp({ port, host: "127.0.0.1", noDelay: true });
  const socket = connectTls({
    port,
    host: "127.0.0.1",
    ALPNProtocols: ["dot"],
    // The certificate was made for this run; what is measured does not depend on who signed it.
    rejectUnauthorized: false,
  });
  return socket.setNoDelay(true);
}
