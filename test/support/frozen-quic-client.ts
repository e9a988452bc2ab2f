/**
 * A program for tests: asks on many QUIC connections, then stops without reading an answer, like a machine that
 * disappears. Arguments: port, connections, streams on each, the name to ask for (type A). Standard input: the PEM of the authority.
 */
import { text } from "node:stream/consumers";
import { framed, queryOctets } from "./dns-client.ts";
import { type QuicCall, QuicCaller } from "./quic-client.ts";

const [, , portText, connectionsText, streamsText, name = ""] = process.argv;
const [port, connections, streams] = [Number(portText), Number(connectionsText), Number(streamsText)];
const query = framed(queryOctets(name, "A", 0));
const caller = await QuicCaller.open(await text(process.stdin));
const calls: QuicCall[] = [];
/** The server takes 256 handshakes at a time. */
const AT_ONCE = 50;
while (calls.length < connections)
  calls.push(
    ...(await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, connections - calls.length) }, () =>
        caller.dial(port, "doq").connected(),
      ),
    )),
  );
for (const call of calls) for (let stream = 0; stream < streams; stream++) call.open(query, true);
// Two turns later, the datagrams are on their way.
setImmediate(() =>
  setImmediate(() => {
    process.stdout.write("asked\n", () => process.kill(process.pid, "SIGSTOP"));
  }),
);
