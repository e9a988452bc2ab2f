/** The machine that the server runs on, as plugins may see it. */

import { readFileSync } from "node:fs";
import { availableParallelism, hostname, networkInterfaces } from "node:os";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { Machine, Random } from "../../plugin/contract/site.ts";
import { readMemoryLimit } from "../../runtime/memory-limit.ts";

export function thisMachine(environment: NodeJS.ProcessEnv): Machine {
  return {
    hostname: hostname() || "localhost",
    interfaceAddresses(name) {
      return networkInterfaces()[name]?.map(({ address, family, scopeid }) =>
        family === "IPv6" && scopeid !== 0 ? `${address}%${name}` : address,
      );
    },
    addresses() {
      return Object.values(networkInterfaces()).flatMap((entries) =>
        (entries ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
      );
    },
    environment,
    parallelism: availableParallelism(),
    descriptors: descriptorLimit(),
    memoryLimit: readMemoryLimit(),
    openssl: process.versions.openssl,
    residentOctets: () => process.memoryUsage.rss(),
  };
}

/** The limit that Linux reports for the process; Node raises the soft limit to the hard one when it starts. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Random numbers for two uses: cheap ones for balance, unpredictable ones drawn in bulk from the system. */
export function systemRandom(): Random {
  // A call into the system costs the same whatever the amount, so numbers are drawn in bulk.
  const pool = new Uint32Array(2_048);
  let left = 0;
  return {
    fraction: Math.random,
    unpredictable() {
      if (left === 0) {
        nodeCrypto().randomFillSync(pool);
        left = pool.length;
      }
      left--;
      const number = pool[left] ?? 0;
      // Used numbers are not left in memory.
      pool[left] = 0;
      return number;
    },
  };
}
