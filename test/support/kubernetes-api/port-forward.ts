/**
 * What the API server and a kubelet do for `kubectl port-forward`: each connection to the client's port comes as two streams, one for data and
 * one that tells what goes wrong (`portforward` of the pod's API, over SPDY/3.1).
 */
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { SpdySession, type SpdyStream } from "./spdy.ts";

const PROTOCOL = "portforward.k8s.io";

export class PortForwards {
  /** Ports of this machine by `namespace/pod:port`. */
  readonly #ports = new Map<string, number>();

  open(pod: string, port: number, localPort: number): void {
    this.#ports.set(`${pod}:${port}`, localPort);
  }

  /** `namespace/pod` in a path that asks for this. */
  static podOf(path: string): string | undefined {
    const match = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/portforward$/.exec(path);
    return match === null ? undefined : `${match[1]}/${match[2]}`;
  }

  /** @returns false where the client speaks something else */
  accept(pod: string, { headers }: IncomingMessage, connection: Duplex): boolean {
    const protocols = String(headers["x-stream-protocol-version"] ?? "").split(/, */);
    if (headers.upgrade?.toUpperCase() !== "SPDY/3.1" || !protocols.includes(PROTOCOL)) return false;
    const head = [
      ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: SPDY/3.1"],
      ...[`X-Stream-Protocol-Version: ${PROTOCOL}`, "", ""],
    ];
    connection.write(head.join("\r\n"));
    /** By the number of the connection. */
    const errors = new Map<string, SpdyStream>();
    const session = new SpdySession(connection, (stream, headers) => {
      const request = headers.get("requestid") ?? "";
      if (headers.get("streamtype") === "error") {
        errors.set(request, stream);
        return;
      }
      this.#connect(`${pod}:${headers.get("port")}`, stream, errors.get(request));
      errors.delete(request);
    });
    // kubectl that ends breaks it off.
    session.run().catch(() => undefined);
    return true;
  }

  #connect(target: string, data: SpdyStream, errors: SpdyStream | undefined): void {
    const port = this.#ports.get(target);
    if (port === undefined) {
      errors?.end(`nothing is known of ${target}`);
      data.end();
      return;
    }
    const socket = connect(port, "127.0.0.1");
    socket.on("error", (error) => {
      errors?.write(`${target}: ${error.message}`);
      data.end();
    });
    socket.once("close", () => errors?.end());
    data.once("close", () => socket.destroy());
    data.pipe(socket).pipe(data);
  }
}
