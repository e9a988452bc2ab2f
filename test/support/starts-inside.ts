/**
 * Starts one Corefile after the other in a network where all ports are free: runs as a program of its own, with the paths of the files on its
 * standard input, a line each. Prints a line of JSON for each.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createServer } from "../../src/index.ts";
import type { EmbeddedServer } from "../../src/server/embedded-server.ts";

/** The result of a start. */
export interface Start {
  readonly file: string;
  /** `undefined` where the server listens. */
  readonly failure?: string;
}

export const STARTS_INSIDE: string = fileURLToPath(import.meta.url);

async function start(file: string): Promise<Start> {
  let server: EmbeddedServer | undefined;
  try {
    server = await createServer({ corefile: readFileSync(file, "utf8"), file });
    await server.start();
    return { file };
  } catch (error) {
    return { file, failure: error instanceof Error ? error.message : String(error) };
  } finally {
    await server?.stop();
  }
}

if (process.argv[1] === STARTS_INSIDE) {
  for (const file of readFileSync(0, "utf8").split("\n").filter(Boolean))
    process.stdout.write(`${JSON.stringify(await start(file))}\n`);
  // Resources that a failed start has left open do not matter here.
  process.exit(0);
}
