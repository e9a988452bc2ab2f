/** Free ports for programs that need their port in advance. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below Linux's range of client ports, so that no client takes one. */
const LOWEST = 10_000;
const HIGHEST = 32_000;
const SHARES = 16;

/** A port that is free for UDP and TCP on all addresses, at this moment. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    // Test files that run in parallel mostly look elsewhere: a port stays free only until another file finds it.
    const share = Math.floor((HIGHEST - LOWEST) / SHARES);
    const port = LOWEST + (process.pid % SHARES) * share + Math.floor(Math.random() * share);
    if (given.has(port)) continue;
    noteGiven(port);
    if (await isFree(port)) return port;
  }
  throw new Error("no free port");
}

/** The ports that this process was given last: who has one may not have opened it yet. Oldest first. */
const given = new Set<number>();
const MOST_GIVEN = 200;

function noteGiven(port: number): void {
  const [oldest] = given;
  if (given.size >= MOST_GIVEN && oldest !== undefined) given.delete(oldest);
  given.add(port);
}

/** Gives each name a free port of its own, the same at every call. */
export type PortOf = (name: string) => number;

const MAX_NAMES = 10;

export async function namedPorts(): Promise<PortOf> {
  const free = new Set<number>();
  while (free.size < MAX_NAMES) free.add(await freePort());
  const left = [...free];
  const ports = new Map<string, number>();
  return (name) => {
    const port = ports.get(name) ?? left.pop();
    if (port === undefined) throw new Error(`more than ${MAX_NAMES} ports`);
    ports.set(name, port);
    return port;
  };
}

async function isFree(port: number): Promise<boolean> {
  for (const address of ["0.0.0.0", "::"]) {
    const udp = createSocket({ type: address === "::" ? "udp6" : "udp4", ipv6Only: address === "::" });
    const tcp = createServer();
    try {
      const bound = [once(udp, "listening"), once(tcp, "listening")];
      udp.bind({ port, address, exclusive: true });
      tcp.listen({ port, host: address, ipv6Only: address === "::", exclusive: true });
      await Promise.all(bound);
    } catch (error) {
      const isWithoutFamily = error instanceof Error && "code" in error && error.code === "EAFNOSUPPORT";
      if (!isWithoutFamily) return false;
    } finally {
      udp.close();
      tcp.close();
    }
  }
  return true;
}
