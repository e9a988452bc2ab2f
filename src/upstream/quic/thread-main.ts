/** Entry point of the thread with the QUIC connections to upstreams. */

import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../lib/text/message-of.ts";
import { QuicDialler } from "../../quic/openssl/client.ts";
import { ClientContext } from "../../quic/openssl/client-context.ts";
import { loadQuicLibrary } from "../../quic/openssl/library.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { Caller } from "./caller.ts";
import type { CallThreadSettings, FromCallThread, ToCallThread } from "./calls.ts";

if (parentPort !== null) {
  const port = parentPort;
  const { trust }: CallThreadSettings = workerData;
  try {
    const sockets = await linuxSockets();
    if (sockets instanceof NoForeignFunctions) throw sockets;
    const library = await loadQuicLibrary();
    const caller = new Caller({
      dialler: new QuicDialler(library, sockets),
      context: new ClientContext(library, trust),
      post: (octets) =>
        port.postMessage({ kind: "records", octets } satisfies FromCallThread, [octets.buffer]),
    });
    port.on("message", (message: ToCallThread) => {
      if (message !== null) caller.take(message);
      else caller.close(() => port.postMessage({ kind: "done" } satisfies FromCallThread));
    });
  } catch (error) {
    const reason = messageOf(error);
    port.postMessage({ kind: "refused", reason } satisfies FromCallThread);
    port.close();
  }
}
