/** Portolan as the quickstart starts it, without queries: the time to the first answer, and its memory. */
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../test/support/free-ports.ts";
import type { AtRestSample } from "../results.ts";
import { portolanCommand } from "../servers/portolan.ts";
import type { LaunchPlan } from "../servers/server.ts";
import { ask } from "./ask.ts";
import { RunningServer } from "./running-server.ts";

const quickstart = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "examples", "quickstart");
const NAME = "storefront.shop.svc.cluster.local";
/** Milliseconds. */
const START_PATIENCE = 30_000;
const ATTEMPT = 50;
const REST = 5_000;

/** @param folder where the quickstart is copied to: its ports may be taken, and get others in the copy */
export async function measureAtRest(round: number, folder: string): Promise<AtRestSample> {
  mkdirSync(folder, { recursive: true });
  cpSync(quickstart, folder, { recursive: true });
  const corefile = await withFreePorts(readFileSync(join(quickstart, "Corefile"), "utf8"));
  const port = Number(/^\.:(\d+) \{$/m.exec(corefile)?.[1]);
  const plan: LaunchPlan = { ...portolanCommand(join(folder, "Corefile")), files: { Corefile: corefile } };
  const start = performance.now();
  await using server = RunningServer.startMeasured("portolan", plan, { folder, port });
  await firstAnswer(server);
  const answeredAt = performance.now();
  await delay(REST);
  server.assertRunning();
  return { round, firstAnswer: answeredAt - start, residentMegabytes: server.residentMegabytes };
}

/** Every port of the Corefile, in its key or behind an address, becomes a free one. */
async function withFreePorts(corefile: string): Promise<string> {
  let text = corefile;
  for (const [written, , port] of corefile.matchAll(/(^\.|127\.0\.0\.1):(\d+)/gm))
    text = text.replace(written, written.replace(`:${port}`, `:${await freePort()}`));
  return text;
}

async function firstAnswer(server: RunningServer): Promise<void> {
  const asked = { port: server.port, transport: "udp", name: NAME, type: "A", patience: ATTEMPT } as const;
  for (const deadline = performance.now() + START_PATIENCE; performance.now() < deadline; ) {
    server.assertRunning();
    const reply = await ask(asked);
    // NOERROR with one answer.
    if (reply !== undefined && ((reply[3] ?? 0) & 0xf) === 0 && reply[7] === 1) return;
    // A connection to a closed port is refused at once, so the loop has to wait.
    await delay(1);
  }
  throw new Error(`the quickstart does not answer ${NAME}:\n${server.output}`);
}
