/** Reading what a server counts. */
import type { Portolan } from "./portolan.ts";

/** The sum of all samples of a family whose labels match; 0 without any. Scrapes the port called `metrics`. */
export async function counted(server: Portolan, name: string, labels = /^/): Promise<number> {
  const { body } = await server.page("metrics", "/metrics");
  let sum = 0;
  for (const line of body.split("\n")) {
    const [, family, of = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (family === name && labels.test(of)) sum += Number(value);
  }
  return sum;
}
