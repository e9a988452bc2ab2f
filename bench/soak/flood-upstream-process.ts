// The upstream of the soak, in a process of its own. It sends its port once it listens, and for each message the count of queries for names in use.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { FrameSplitter, frame } from "../load/length-framing.ts";
import { replyTo, UpstreamCounts } from "./flood-upstream.ts";

const counts = new UpstreamCounts();
const tcp = createServer((socket) => {
  const splitter = new FrameSplitter();
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) =>
    splitter.push(chunk, (query) => {
      const reply = replyTo(query, "tcp", counts);
      if (reply !== undefined) socket.write(frame(reply));
    }),
  );
});
tcp.listen(0, "127.0.0.1");
await once(tcp, "listening");
const address = tcp.address();
const port = address === null || typeof address === "string" ? 0 : address.port;
const udp = createSocket({ type: "udp4", recvBufferSize: 4 * 1024 * 1024 });
udp.on("message", (query, client) => {
  const reply = replyTo(query, "udp", counts);
  if (reply !== undefined) udp.send(reply, client.port, client.address);
});
udp.on("error", () => undefined);
udp.bind(port, "127.0.0.1");
await once(udp, "listening");
process.on("message", () => process.send?.(counts.inUse));
// Ends with the benchmark.
process.on("disconnect", () => process.exit());
process.send?.(port);
