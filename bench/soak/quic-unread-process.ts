// QUIC connections that ask and then stop like a machine that disappears, in a process of their own.
import { framed, queryOctets } from "../../test/support/dns-client.ts";
import { QuicCaller } from "../../test/support/quic-client.ts";
import { LONG_NAME, type QuicUnreadOrder, STREAMS } from "./quic-unread.ts";

const { port, connections, authority }: QuicUnreadOrder = JSON.parse(process.argv[2] ?? "{}");
/** Connections that begin at the same time. */
const PORTION = 25;
const query = framed(queryOctets(LONG_NAME, "TXT", 0));
const caller = await QuicCaller.open(authority);
let connected = 0;
for (let begun = 0; begun < connections; begun += PORTION) {
  const dialled = await Promise.allSettled(
    Array.from({ length: Math.min(PORTION, connections - begun) }, () =>
      caller.dial(port, "doq").connected(),
    ),
  );
  for (const attempt of dialled) {
    if (attempt.status === "rejected") continue;
    connected++;
    const call = attempt.value;
    for (let stream = 0; stream < STREAMS && call.connection.isOpen; stream++) call.open(query, true);
  }
}
// Two turns later, the datagrams have left.
setImmediate(() => setImmediate(() => process.send?.(connected, () => process.kill(process.pid, "SIGSTOP"))));
