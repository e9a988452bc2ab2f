// One flood, in a process of its own: it sends how many queries it has sent, and how many were answered.
import { type FloodOrder, runFlood } from "./flood.ts";

const order: FloodOrder = JSON.parse(process.argv[2] ?? "{}");
process.send?.(await runFlood(order));
process.disconnect();
