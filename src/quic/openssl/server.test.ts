/** Server and client on the loopback, each with OpenSSL. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CertificateAuthority } from "../../../test/support/certificates.ts";
import { skipWithoutQuic } from "../../../test/support/quic.ts";
import { QuicCaller } from "../../../test/support/quic-client.ts";
import { untilTrue } from "../../../test/support/until-true.ts";
import { Linux } from "../../runtime/linux/layouts.ts";
import { type LinuxSockets, linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import {
  parseHost,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
  writeSocketAddress,
} from "../../runtime/linux/socket-address.ts";
import type { QuicClosed, QuicConnection, QuicConnectionUser, QuicStream } from "../quic.ts";
import { loadQuicLibrary, type QuicLibrary } from "./library.ts";
import { QuicServer, type QuicServerOptions } from "./server.ts";
import { ServerContext } from "./server-context.ts";

const PROTOCOL = "echo";
const AUTHORITY = new CertificateAuthority();
const { certificate, key } = AUTHORITY.issue({ commonName: "x", hosts: ["example.org"] });
const IDENTITY = {
  certificate,
  key,
  authorities: undefined,
  clientAuthentication: "nocert",
  logsKeys: false,
} as const;

describe("a QUIC server", { skip: skipWithoutQuic() }, () => {
  let library: QuicLibrary;
  let sockets: LinuxSockets;
  let caller: QuicCaller;
  before(async () => {
    library = await loadQuicLibrary();
    const found = await linuxSockets();
    assert.ok(!(found instanceof Error));
    sockets = found;
    caller = await QuicCaller.open(AUTHORITY.certificate);
  });
  after(() => caller.close());

  /** Returns what comes on a stream, upper-cased, and notes what happens to its connections. */
  class Echo implements AsyncDisposable {
    readonly connections: QuicConnection[] = [];
    readonly closed: QuicClosed[] = [];
    readonly streams: QuicStream[] = [];
    turnedAway = 0;
    lost = 0;
    readonly port: number;
    readonly server: QuicServer;
    readonly context = new ServerContext(library, PROTOCOL, () => undefined);

    constructor(options: Partial<QuicServerOptions> = {}) {
      const { fd, port } = openSocket(sockets);
      this.port = port;
      this.context.identify(IDENTITY);
      this.server = new QuicServer({
        library,
        sockets,
        fd,
        family: 4,
        isWildcard: false,
        context: this.context,
        maxStreams: () => 100,
        maxHeldForPeer: () => 2 ** 24,
        handshakesPerSecond: 1_000,
        seed: 7,
        onConnection: (connection) => this.#welcome(connection),
        onTurnedAway: () => this.turnedAway++,
        onTurn: () => undefined,
        onError: (error) => assert.fail(error),
        ...options,
      });
    }

    #welcome(connection: QuicConnection): QuicConnectionUser {
      this.connections.push(connection);
      return {
        connected: () => undefined,
        accepted: (stream) => {
          this.streams.push(stream);
          return {
            received: (octets, isLast) =>
              stream.write(
                Buffer.from(Buffer.from(octets).toString("latin1").toUpperCase(), "latin1"),
                isLast,
              ),
            lost: () => this.lost++,
          };
        },
        closed: (reason) => void this.closed.push(reason),
      };
    }

    dial(protocol = PROTOCOL) {
      return caller.dial(this.port, protocol, "example.org");
    }

    async [Symbol.asyncDispose](): Promise<void> {
      for (const connection of this.connections) if (connection.isOpen) connection.close(0);
      this.server.run();
      await untilTrue(() => this.server.connections === 0);
      this.server.close();
      this.context.free();
    }
  }

  test("answers on each stream what came on it", async () => {
    await using echo = new Echo();
    const call = await echo.dial().connected();
    assert.equal(call.connection.certificateFault, undefined);
    const answers = await Promise.all(["one", "two", "three"].map((text) => call.ask(Buffer.from(text))));
    assert.deepEqual(answers.map(String), ["ONE", "TWO", "THREE"]);
    const [connection] = echo.connections;
    assert.equal(connection?.peer.address, "127.0.0.1");
    assert.deepEqual([connection.isOpen, connection.isConnected], [true, true]);
    assert.deepEqual(
      echo.streams.map(({ id, isUnidirectional }) => [id, isUnidirectional]),
      [
        [0, false],
        [4, false],
        [8, false],
      ],
    );
    await untilTrue(() => connection.openStreams === 0 && echo.server.held === 0);
  });

  test("carries a mebibyte in both directions, in order", async () => {
    await using echo = new Echo();
    const call = await echo.dial().connected();
    const sent = Buffer.alloc(2 ** 20, "abcdefghijk");
    const answer = await call.ask(sent);
    assert.ok(answer?.equals(Buffer.from(sent.toString("latin1").toUpperCase(), "latin1")));
    await untilTrue(() => echo.server.held === 0);
  });

  test("a stream that the server resets is lost to the client, and the connection goes on", async () => {
    await using echo = new Echo();
    const call = await echo.dial().connected();
    const { heard, stream } = call.open(Buffer.from("half"), false);
    await untilTrue(() => echo.streams.length === 1);
    echo.streams[0]?.reset(3);
    echo.server.run();
    assert.equal(await heard, undefined);
    stream.reset(0);
    assert.equal(String(await call.ask(Buffer.from("more"))), "MORE");
  });

  test("a stream that the client resets is lost to the server", async () => {
    await using echo = new Echo();
    const call = await echo.dial().connected();
    const { stream } = call.open(Buffer.from("half"), false);
    await untilTrue(() => echo.streams.length === 1);
    stream.reset(9);
    await untilTrue(() => echo.lost === 1);
    await untilTrue(() => echo.connections[0]?.openStreams === 0);
  });

  test("each side learns the code and the words with which the other closes", async () => {
    await using echo = new Echo();
    const one = await echo.dial().connected();
    const other = await echo.dial().connected();
    // A close right behind the handshake may be lost with it.
    await Promise.all([one, other].map((call) => call.ask(Buffer.from("there"))));
    echo.connections[0]?.close(5, "tired");
    echo.server.run();
    assert.deepEqual(await one.closed, { by: "peer", code: 5, text: "tired" });
    other.connection.close(6, "bored");
    await untilTrue(() => echo.closed.some(({ by }) => by === "peer"));
    assert.deepEqual(
      echo.closed.find(({ by }) => by === "peer"),
      { by: "peer", code: 6, text: "bored" },
    );
    assert.deepEqual(
      echo.connections.map(({ isOpen }) => isOpen),
      [false, false],
    );
  });

  test("a client that speaks another protocol does not get in", async () => {
    await using echo = new Echo();
    const call = echo.dial("other");
    await assert.rejects(call.connected());
    assert.equal((await call.closed).code, undefined);
  });

  test("a connection that is refused is closed", async () => {
    await using echo = new Echo({
      onConnection(connection) {
        connection.close(2, "full");
        return undefined;
      },
    });
    const call = echo.dial();
    const { by } = await call.closed;
    assert.equal(by, "peer");
  });

  test("handshakes above the number for a second are turned away, and counted", async () => {
    await using echo = new Echo({ handshakesPerSecond: 2 });
    const calls = Array.from({ length: 8 }, () => echo.dial());
    await untilTrue(() => echo.turnedAway > 0);
    await untilTrue(() => echo.connections.length >= 2);
    for (const call of calls) call.connection.close(0);
  });

  test("an invalid identity is refused, and the one before stays in force", async () => {
    await using echo = new Echo();
    for (const wrong of [
      { ...IDENTITY, certificate: "no certificate" },
      { ...IDENTITY, key: "no key" },
    ])
      assert.throws(() => echo.context.identify(wrong));
    const call = await echo.dial().connected();
    assert.equal(String(await call.ask(Buffer.from("still"))), "STILL");
  });
});

/** A socket on a free port of the loopback. */
function openSocket({ libc }: LinuxSockets): { readonly fd: number; readonly port: number } {
  const fd = libc.socket(Linux.AF_INET, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  const length = writeSocketAddress(name, 0, 4, parseHost("127.0.0.1")?.octets ?? name, 0, 0);
  assert.equal(libc.bind(fd, name, length), 0);
  assert.ok(readLocalName(libc, fd, name) >= 0);
  return { fd, port: readPort(name, 0) };
}
