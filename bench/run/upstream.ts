/** The server that all measured ones forward to. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../test/support/free-ports.ts";
import { EXTERNAL_ZONE } from "../names.ts";
import { upstreamPlan } from "../servers/unbound.ts";
import { ask } from "./ask.ts";
import { RunningServer } from "./running-server.ts";

/** Milliseconds. */
const START_PATIENCE = 30_000;

/** @throws Error where it does not answer */
export async function startUpstream(folder: string): Promise<RunningServer> {
  const place = { folder: join(folder, "upstream"), port: await freePort() };
  mkdirSync(place.folder, { recursive: true });
  const upstream = RunningServer.startUpstream(upstreamPlan(place), place);
  await answers(upstream);
  return upstream;
}

/**
 * Waits until a server answers for a name of the upstream.
 * @throws Error where it does not; it has been stopped then
 */
export async function answers(server: RunningServer): Promise<void> {
  const asked = {
    port: server.port,
    transport: "udp",
    name: EXTERNAL_ZONE,
    type: "A",
    patience: 200,
  } as const;
  for (const deadline = performance.now() + START_PATIENCE; performance.now() < deadline; ) {
    server.assertRunning();
    if ((await ask(asked)) !== undefined) return;
    await delay(50);
  }
  await server.stop();
  throw new Error(`${server.kind.name} does not answer:\n${server.output}`);
}
