// Connections that ask without end and read nothing, in a process of their own.
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { frame } from "../load/length-framing.ts";
import { encodeQuery } from "../run/ask.ts";
import { LONG_NAME, type UnreadOrder } from "./unread.ts";

const { port, connections, seconds }: UnreadOrder = JSON.parse(process.argv[2] ?? "{}");
/** Connections that begin at the same time. */
const PORTION = 25;
const end = performance.now() + seconds * 1000;
const query = frame(encodeQuery({ name: LONG_NAME, type: "TXT" }));
const queries = Buffer.concat(Array.from({ length: 200 }, () => query));

function askAndReadNothing(): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => socket.destroy());
  socket.pause();
  const ask = (): void => {
    if (socket.destroyed) return;
    if (socket.write(queries)) setImmediate(ask);
    else socket.once("drain", ask);
  };
  socket.once("connect", ask);
  return socket;
}

// Those that the server closes are opened anew.
const sockets: Socket[] = [];
while (performance.now() < end) {
  let opened = 0;
  for (let index = 0; index < connections && opened < PORTION; index++) {
    if (sockets[index]?.destroyed === false) continue;
    sockets[index] = askAndReadNothing();
    opened++;
  }
  await delay(25);
}
process.exit(0);
