import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { test } from "node:test";
import { loadForeignFunctions } from "../runtime/linux/libc.ts";
import { type TcpSocket, tcpSockets } from "./tcp-socket.ts";

const skip = await loadForeignFunctions().then(
  () => false,
  (error: Error) => error.message,
);

test("a socket that holds back leaves new connections to the next one on its port", { skip }, async () => {
  const open = await tcpSockets();
  const listen = async (
    port: number,
    reusePort: boolean,
  ): Promise<{ server: Server; socket: TcpSocket; port: number; accepted: () => number }> => {
    const socket = open({ host: "127.0.0.1", port }, { reusePort });
    assert.ok(socket);
    let accepted = 0;
    const server = createServer((connection) => {
      accepted++;
      connection.destroy();
    });
    server.listen({ fd: socket.fd });
    await once(server, "listening");
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    return { server, socket, port: address.port, accepted: () => accepted };
  };
  const old = await listen(0, false);
  // An earlier connection is accepted.
  const before = connect(old.port, "127.0.0.1");
  await once(before, "close");
  assert.equal(old.accepted(), 1);

  old.socket.holdBack();
  const clients = Array.from({ length: 5 }, () => connect(old.port, "127.0.0.1"));
  const closed = Promise.all(clients.map((client) => once(client, "close")));
  old.socket.share(true);
  const next = await listen(old.port, true);
  old.server.close();
  // The system tries again after a second; a reset would reject.
  await closed;
  assert.deepEqual([old.accepted(), next.accepted()], [1, 5]);
  next.server.close();
});
