/** The benchmark under floods: `--soak`. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { skipWithoutQuic } from "../../test/support/quic.ts";
import { reloadStorm } from "../../test/support/reload-storm.ts";
import { USUAL_SIZE } from "../cluster/cluster-shape.ts";
import { describeMachine } from "../machine.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { measureSoak } from "./measure-soak.ts";
import { measureQuicUnread } from "./quic-unread.ts";
import type { QuicUnreadSample, SoakResults, SoakRun, UnreadSample } from "./soak-results.ts";
import { measureUnread } from "./unread.ts";

/** Of each flood. */
const SECONDS = 12;
const THREADS = [1, 2] as const;
/** Between one thread and two, with four other processes that keep processors busy. */
const STORM = { reloads: 2_000, busy: 4, pause: 230 };
/** Memory and clients that read nothing, and for how long. */
const UNREAD = [
  { mebibytes: 170, connections: 1_500, seconds: 20 },
  { mebibytes: 128, connections: 300, seconds: 20 },
] as const;

const QUIC_UNREAD = { mebibytes: 170, connections: 1_500, seconds: 20 } as const;

/**
 * @param minutes for each number of threads
 * @throws Error where the server ends, a reload does not, or a query is lost in one
 */
export async function runSoakBenchmark(
  root: string,
  folder: string,
  minutes: number,
  say: (line: string) => void,
): Promise<SoakResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const runs: SoakRun[] = [];
  for (const threads of THREADS) {
    say(`floods with multisocket ${threads}, ${minutes} minutes`);
    runs.push(await measureSoak({ threads, minutes, seconds: SECONDS, size: USUAL_SIZE, folder, say }));
  }
  say(`${STORM.reloads} reloads between one thread and two`);
  const { udp, tcp, reloads, longestSeconds } = await reloadStorm({ ...STORM, say });
  say(
    `    ${reloads} reloads done, the longest in ${longestSeconds.toFixed(1)} s; of ${udp.sent} queries over UDP ${udp.lost} lost, of ${tcp.sent} connections ${tcp.lost}`,
  );
  if (reloads !== STORM.reloads || udp.lost + tcp.lost > 0) throw new Error("reloads cost queries");
  const unread = await runUnread(folder, say);
  return { startedAt, machine, minutes, runs, unread, quicUnread: await runQuicUnread(folder, say) };
}

async function runUnread(
  folder: string,
  say: (line: string) => void,
): Promise<readonly UnreadSample[] | undefined> {
  if (process.getuid?.() !== 0) {
    say("clients that read nothing: not measured, control groups need root");
    return undefined;
  }
  const samples: UnreadSample[] = [];
  for (const each of UNREAD) {
    say(`${each.connections} clients that read nothing, in ${each.mebibytes} MiB`);
    const sample = await measureUnread({ ...each, folder });
    samples.push(sample);
    say(
      `    ${sample.peakMegabytes.toFixed(0)} MB at most, ${sample.kills} killed; of ${sample.asked} questions of a client that reads ${sample.lost} lost`,
    );
  }
  return samples;
}

async function runQuicUnread(
  folder: string,
  say: (line: string) => void,
): Promise<QuicUnreadSample | undefined> {
  const missing = process.getuid?.() === 0 ? skipWithoutQuic() : "control groups need root";
  if (missing !== false) {
    say(`clients of QUIC that vanish: not measured, ${missing}`);
    return undefined;
  }
  say(`${QUIC_UNREAD.connections} QUIC connections whose clients vanish, in ${QUIC_UNREAD.mebibytes} MiB`);
  const sample = await measureQuicUnread({ ...QUIC_UNREAD, folder });
  say(
    `    ${sample.peakMegabytes.toFixed(0)} MB at most, ${sample.kills} killed; of ${sample.asked} questions of a client that stays ${sample.lost} lost, of ${sample.askedAnew} over new connections ${sample.lostAnew}`,
  );
  return sample;
}
