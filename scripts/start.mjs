// npm start: from a fresh clone to a running DNS server. Runs on Node 20, and before anything is installed.
// Arguments after `--` go to the server: npm start -- -dns.port 5353
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { endLike, runAttached } from "../bin/attached-process.mjs";
import { provideBuild } from "./lib/build.mjs";
import { questionOf, waitForAnswer } from "./lib/dns-probe.mjs";
import { provideStartPackages } from "./lib/packages.mjs";
import { runScript, StepFailure } from "./lib/step.mjs";

/**
 * A command for the newcomer to try: what it will answer, and why.
 * @typedef {{ command: string, answer: string, about: string }} Try
 */

/** @typedef {{ console: string, queries: Try[] }} Tour the address of the console, and queries */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const quickstart = join("examples", "quickstart");

await runScript(async () => {
  const node = await provideStartPackages(root);
  await provideBuild(root, node, { types: false });
  const tour = readTour();
  const question = questionOf(tour.queries[0]?.command ?? "");
  // Where another server has the port, an answer would be that one's: Portolan itself will say what is wrong.
  const announced = question !== undefined && (await isFree(question));

  const conf = join(quickstart, "Corefile");
  console.log(`Starting Portolan with ${conf}`);
  const server = runAttached(node, [join("bin", "portolan"), "-conf", conf, ...process.argv.slice(2)], {
    cwd: root,
  });
  const waiting = new AbortController();
  const announcing = announced ? announce(question, tour, waiting.signal) : undefined;
  try {
    endLike(await server.ended);
  } finally {
    waiting.abort();
    await announcing;
  }
});

/** @returns {Tour} */
function readTour() {
  const file = join(quickstart, "try.json");
  try {
    return JSON.parse(readFileSync(join(root, file), "utf8"));
  } catch (error) {
    throw new StepFailure(`${file}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Once the server answers, shows what to ask it.
 * @param {import("./lib/dns-probe.mjs").Question} question
 * @param {Tour} tour
 * @param {AbortSignal} signal
 */
async function announce(question, tour, signal) {
  if (!(await waitForAnswer(question, signal))) return;
  const lines = tour.queries.flatMap(({ command, answer, about }) => [
    `  ${command}`,
    ...answer.split("\n").map((line) => `      ${line}`),
    `      (${about})`,
    "",
  ]);
  const where = `Portolan answers at ${question.address} port ${question.port}`;
  console.log(
    [
      "",
      `Console: ${tour.console}`,
      "",
      `${where}. Try in another terminal:`,
      "",
      ...lines,
      "Ctrl-C stops it.",
      "",
    ].join("\n"),
  );
}

/** @param {{ address: string, port: number }} place */
async function isFree({ address, port }) {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  try {
    const listening = once(socket, "listening");
    socket.bind(port, address);
    await listening;
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}
