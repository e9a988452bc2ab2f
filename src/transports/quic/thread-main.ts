/** Entry point of a QUIC listener's thread. */

import { parentPort, workerData } from "node:worker_threads";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { loadQuicLibrary } from "../../quic/openssl/library.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { QuicService } from "./quic-service.ts";
import type { FromQuicThread, QuicThreadSettings, ToQuicThread } from "./thread-protocol.ts";

if (parentPort !== null) {
  const port = parentPort;
  const settings: QuicThreadSettings = workerData;
  const post = (message: FromQuicThread, transfer: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transfer]);
  try {
    const sockets = await linuxSockets();
    if (sockets instanceof NoForeignFunctions) throw sockets;
    const library = await loadQuicLibrary();
    const seed = nodeCrypto().randomBytes(4).readUInt32LE();
    const service = new QuicService({ library, sockets, settings, seed, clock: new SystemClock(), post });
    port.on("message", (message: ToQuicThread) => {
      if (message.kind !== "close") service.take(message);
      else void service.close().then(() => port.close());
    });
    post({ kind: "ready" });
  } catch (error) {
    post({ kind: "refused", reason: messageOf(error) });
    port.close();
  }
}
