/** Makes tests of sets in the format in which `zones/` was recorded, with signatures and keys. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { writeTree } from "../../../scripts/lib/test-tree.ts";
import { decodeMessage, encodeMessage } from "../../../src/dns/message.ts";
import { Flag, Rcode } from "../../../src/dns/numbers.ts";
import { createServer } from "../../../src/index.ts";
import { namedPorts } from "../free-ports.ts";
import { unsaidReasons } from "./listed-differences.ts";
import { readDifferences, readLines, type VectorAnswer } from "./vector-set.ts";
import { answerText, completeAnswer } from "./vector-text.ts";
import {
  askCase,
  type ComparableReply,
  type RecordedCase,
  type RecordedReply,
  recordedReply,
} from "./zone-case.ts";

export interface RecordedSet {
  readonly id: string;
  readonly corefile: string;
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly RecordedCase[];
  /** Files that change, and what is asked then. */
  readonly steps?: readonly RecordedStep[];
  /** The NOTIFY sent to `{{port4}}`, and the reply to it. */
  readonly notify_received?: readonly RecordedReply[];
  readonly notify_reply?: "ok" | "refused" | "silent";
}

interface RecordedStep {
  readonly write: Readonly<Record<string, string>>;
  readonly cases: readonly RecordedCase[];
  /** Awaits a state that was true before the files were written. Not in the recordings. */
  readonly expects?: "before";
}

/** Milliseconds within which a server comes to the state of a recording. */
const PATIENCE = 20_000;

/** Makes a reply comparable that says something else at each moment. */
export type Normaliser = (reply: ComparableReply | undefined) => ComparableReply | undefined;

/** @param plugin names both `zones/<plugin>.jsonl` and the file of differences */
export function replayRecorded(plugin: string, normal: Normaliser = (reply) => reply): void {
  const differences = readDifferences(`zones/differences/${plugin}.json`);
  test(`docs/compatibility.md says why ${plugin} differs`, () => {
    assert.deepEqual(unsaidReasons(differences.values()), []);
  });
  suite(`${plugin}, recorded from CoreDNS`, { concurrency: 4 }, () => {
    for (const set of readLines<RecordedSet>(`zones/${plugin}.jsonl`))
      test(set.id, () => replay(set, differences, normal));
  });
}

async function replay(
  set: RecordedSet,
  differences: ReadonlyMap<string, string>,
  normal: Normaliser,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-recorded-"));
  try {
    const portOf = await namedPorts();
    writeTree(folder, set.files);
    const corefile = set.corefile
      .replaceAll(/\{\{(port\d?)\}\}/g, (_all, name: string) => String(portOf(name)))
      .replaceAll("{{dir}}", folder)
      .replace(/(key file )(?=K)/, corefileIsIn(folder, set.corefile));
    const { notify_received: notifications = [], notify_reply: word = "ok", steps = [] } = set;
    await using catcher = await NotifyCatcher.at(portOf("port4"), word);
    await using server = await createServer({ corefile });
    await server.start();
    const replaying = new Replaying(set, portOf("port"), differences, normal);
    await replaying.ask(set.cases);
    for (const { write, cases, expects } of steps) {
      if (expects === "before") await replaying.settle(cases);
      writeTree(folder, write);
      await replaying.ask(cases);
    }
    const { deviations, differs } = replaying;
    assert.deepEqual(
      await catcher.caught(notifications.length),
      notifications.map((each) =>
        completeAnswer({ ...each, flags: each.flags.join(" ").toUpperCase(), edns: null }),
      ),
    );
    assert.deepEqual(deviations, []);
    const listed = [...differences.keys()].filter((id) => id.startsWith(`${set.id} `));
    const needless = listed.filter((id) => !differs.has(id));
    assert.deepEqual(needless, [], "listed as different, and is not");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The cases of one server, in order. */
class Replaying {
  readonly deviations: unknown[] = [];
  readonly differs = new Set<string>();
  readonly #set: RecordedSet;
  readonly #port: number;
  readonly #differences: ReadonlyMap<string, string>;
  readonly #normal: Normaliser;
  #count = 0;

  constructor(set: RecordedSet, port: number, differences: ReadonlyMap<string, string>, normal: Normaliser) {
    this.#set = set;
    this.#port = port;
    this.#differences = differences;
    this.#normal = normal;
  }

  async ask(cases: readonly RecordedCase[]): Promise<void> {
    if (this.#set.steps !== undefined || this.#set.id.startsWith("sign-")) await this.settle(cases);
    for (const asked of cases) {
      const id = `${this.#set.id} ${++this.#count}`;
      const { actual, expected } = await this.#compare(asked);
      if (isDeepStrictEqual(actual, expected)) continue;
      this.differs.add(id);
      if (!this.#differences.has(id)) this.deviations.push({ id, actual, expected });
    }
  }

  /** Waits until the first case comes out as recorded, or too long. */
  async settle([first]: readonly RecordedCase[]): Promise<void> {
    if (first === undefined) return;
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      const { actual, expected } = await this.#compare(first);
      if (isDeepStrictEqual(actual, expected) || performance.now() > deadline) return;
    }
  }

  async #compare(asked: RecordedCase): Promise<Record<"actual" | "expected", ComparableReply | undefined>> {
    const expected = this.#normal(recordedReply(asked));
    const now = Math.floor(Date.now() / 1000);
    const patience = expected === undefined ? 300 : undefined;
    return { expected, actual: this.#normal(await askCase(this.#port, asked, now, patience)) };
  }
}

/** Stands where NOTIFY is sent to. */
class NotifyCatcher implements AsyncDisposable {
  readonly #socket = createSocket("udp4");
  readonly #caught: VectorAnswer[] = [];

  static async at(port: number, reply: "ok" | "refused" | "silent"): Promise<NotifyCatcher> {
    const catcher = new NotifyCatcher();
    const socket = catcher.#socket;
    socket.on("message", (octets, { port: from }) => {
      const message = decodeMessage(octets);
      catcher.#caught.push(answerText(message));
      socket.emit("caught");
      const answer = { ...message, flags: message.flags | Flag.QR };
      const rcode = reply === "ok" ? Rcode.NOERROR : Rcode.REFUSED;
      if (reply !== "silent") socket.send(encodeMessage({ ...answer, rcode }), from, "127.0.0.1");
    });
    socket.bind(port, "127.0.0.1");
    await once(socket, "listening");
    return catcher;
  }

  /** As many as there have to be. */
  async caught(count: number): Promise<readonly VectorAnswer[]> {
    const signal = AbortSignal.timeout(PATIENCE);
    while (this.#caught.length < count) await once(this.#socket, "caught", { signal });
    return this.#caught;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }
}

/** The recording ran in the folder of its files; tests run in that of the project. */
function corefileIsIn(folder: string, corefile: string): string {
  return /^\s*root /m.test(corefile) ? "$1" : `$1${folder}/`;
}
