/** Misbehaviour of upstreams, and the answers that clients must get. */
import { createSocket } from "node:dgram";
import type { Message } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { Flag } from "../../src/dns/numbers.ts";
import { RecordType } from "../../src/dns/type-names.ts";
import { frame, type Script, type ScriptedQuestion } from "../../src/upstream/fixtures/scripted-server.ts";

export const TRUTH = "192.0.2.1";
export const LIE = "198.51.100.66";

export function say(asked: ScriptedQuestion, address: string, change: Partial<Message> = {}): Uint8Array {
  return asked.encode({ answer: [`${asked.name} 60 IN A ${address}`], message: change });
}

export const question = (
  asked: ScriptedQuestion,
  change: Partial<Message["questions"][number]>,
): Partial<Message> => ({
  questions: asked.message.questions.map((one) => ({ ...one, ...change })),
});
const otherId = (asked: ScriptedQuestion, n = 1): Partial<Message> => ({
  id: (asked.message.id + n) & 0xffff,
});
const cut = (octets: Uint8Array, missing: number): Uint8Array => octets.subarray(0, octets.length - missing);

/** An answer to another question is skipped: the query waits for the true answer (RFC 5452 section 9.1). */
const thenTruth =
  (lie: Script): Script =>
  (asked) => {
    lie(asked);
    asked.send(say(asked, TRUTH));
  };

/** Sends from a socket that is not the upstream's. */
function sendFromElsewhere(
  asked: ScriptedQuestion,
  octets: Uint8Array,
  address: string,
  then: () => void,
): void {
  const socket = createSocket("udp4");
  socket.bind(0, address, () => {
    socket.send(octets, asked.sourcePort, asked.sourceAddress, () => socket.close(then));
  });
}

export interface Liar {
  readonly does: string;
  readonly script: Script;
  /** The client's answer; without the word TC the client may also be sent to TCP. */
  readonly outcome: string;
}

/** Stopped before the upstream is. */
export const lateAnswers: NodeJS.Timeout[] = [];

/** By the first label of the name asked. */
export const OVER_UDP: Readonly<Record<string, Liar>> = {
  id: {
    does: "answers with another id",
    script: (asked) => asked.send(say(asked, LIE, otherId(asked))),
    outcome: "SERVFAIL",
  },
  "id-first": {
    does: "answers with 200 other ids, then with the truth",
    script: (asked) => {
      for (let n = 1; n <= 200; n++) asked.send(say(asked, LIE, otherId(asked, n)));
      asked.send(say(asked, TRUTH));
    },
    outcome: `NOERROR ${TRUTH}`,
  },
  name: {
    does: "answers about another name, then the truth",
    script: thenTruth((asked) =>
      asked.send(say(asked, LIE, question(asked, { name: Name.parse("other.example.") }))),
    ),
    outcome: `NOERROR ${TRUTH}`,
  },
  type: {
    does: "answers about another type, then the truth",
    script: thenTruth((asked) => asked.send(say(asked, LIE, question(asked, { type: RecordType.AAAA })))),
    outcome: `NOERROR ${TRUTH}`,
  },
  class: {
    does: "answers about another class, then the truth",
    script: thenTruth((asked) => asked.send(say(asked, LIE, question(asked, { class: 3 })))),
    outcome: `NOERROR ${TRUTH}`,
  },
  "no-question": {
    does: "answers without a question, then the truth",
    script: thenTruth((asked) => asked.send(say(asked, LIE, { questions: [] }))),
    outcome: `NOERROR ${TRUTH}`,
  },
  "two-questions": {
    does: "answers about two names, then the truth",
    script: thenTruth((asked) =>
      asked.send(say(asked, LIE, { questions: [...asked.message.questions, ...asked.message.questions] })),
    ),
    outcome: `NOERROR ${TRUTH}`,
  },
  query: {
    does: "sends a query back, then the truth",
    script: thenTruth((asked) => asked.send(say(asked, LIE, { flags: Flag.RD }))),
    outcome: `NOERROR ${TRUTH}`,
  },
  echo: {
    does: "sends the query itself back, then the truth",
    script: thenTruth((asked) => asked.send(asked.bytes)),
    outcome: `NOERROR ${TRUTH}`,
  },
  port: {
    does: "is spoken for from another port",
    script: (asked) =>
      sendFromElsewhere(asked, say(asked, LIE), "127.0.0.1", () => asked.send(say(asked, TRUTH))),
    outcome: `NOERROR ${TRUTH}`,
  },
  address: {
    does: "is spoken for from another address",
    script: (asked) =>
      sendFromElsewhere(asked, say(asked, LIE), "127.0.0.2", () => asked.send(say(asked, TRUTH))),
    outcome: `NOERROR ${TRUTH}`,
  },
  short: {
    does: "sends eleven octets, then the truth",
    script: (asked) => {
      asked.send(say(asked, LIE).subarray(0, 11));
      asked.send(say(asked, TRUTH));
    },
    outcome: `NOERROR ${TRUTH}`,
  },
  cut: {
    does: "sends an answer cut off",
    script: (asked) => asked.send(cut(say(asked, LIE), 2)),
    outcome: "NOERROR TC",
  },
  rubbish: {
    does: "sends a record whose owner never ends",
    script: (asked) => {
      const octets = Buffer.from(say(asked, LIE));
      // The owner of the only record is a pointer, 16 octets from the end: it points to itself now.
      octets.writeUInt16BE(0xc000 | (octets.length - 16), octets.length - 16);
      asked.send(octets);
    },
    outcome: "SERVFAIL",
  },
  other: {
    does: "sends another message altogether, then the truth",
    script: thenTruth((asked) =>
      asked.send(
        Buffer.concat([asked.bytes.subarray(0, 2), Buffer.from("8180000100ff00000000c00cc00c", "hex")]),
      ),
    ),
    outcome: `NOERROR ${TRUTH}`,
  },
  twice: {
    does: "answers twice, the second time a lie",
    script: (asked) => {
      asked.send(say(asked, TRUTH));
      asked.send(say(asked, LIE));
    },
    outcome: `NOERROR ${TRUTH}`,
  },
  large: {
    does: "sends more than the client has room for",
    script: (asked) =>
      asked.answer({ answer: Array.from({ length: 60 }, (_, n) => `${asked.name} 60 IN A 192.0.2.${n}`) }),
    outcome: "NOERROR TC",
  },
  case: {
    does: "spells the name its own way",
    script: (asked) =>
      asked.send(say(asked, TRUTH, question(asked, { name: Name.parse(asked.name.toUpperCase()) }))),
    outcome: `NOERROR ${TRUTH}`,
  },
  silent: { does: "says nothing", script: () => undefined, outcome: "SERVFAIL" },
  late: {
    does: "answers after the client gave up",
    script: (asked) => {
      lateAnswers.push(setTimeout(() => asked.send(say(asked, LIE)), 2_500));
    },
    outcome: "SERVFAIL",
  },
  honest: {
    does: "tells the truth",
    script: (asked) => asked.send(say(asked, TRUTH)),
    outcome: `NOERROR ${TRUTH}`,
  },
};

export const OVER_TCP: Readonly<Record<string, Liar>> = {
  id: {
    does: "answers with another id",
    script: (asked) => asked.send(say(asked, LIE, otherId(asked))),
    outcome: "SERVFAIL",
  },
  name: {
    does: "answers about another name, then the truth",
    script: thenTruth((asked) =>
      asked.send(say(asked, LIE, question(asked, { name: Name.parse("other.example.") }))),
    ),
    outcome: `NOERROR ${TRUTH}`,
  },
  cut: {
    does: "sends an answer cut off",
    script: (asked) => asked.send(cut(say(asked, LIE), 2)),
    outcome: "SERVFAIL",
  },
  half: {
    does: "hangs up in the middle of the answer",
    script: (asked) => asked.socket?.end(cut(frame(say(asked, LIE)), 6)),
    outcome: "SERVFAIL",
  },
  reset: {
    does: "resets the connection",
    script: (asked) => void asked.socket?.resetAndDestroy(),
    outcome: "SERVFAIL",
  },
  close: { does: "closes the connection", script: (asked) => void asked.socket?.end(), outcome: "SERVFAIL" },
  empty: {
    does: "sends messages of no length, then the truth",
    script: (asked) => {
      asked.socket?.write(Buffer.alloc(8));
      asked.send(say(asked, TRUTH));
    },
    outcome: `NOERROR ${TRUTH}`,
  },
  pieces: {
    does: "sends the answer octet by octet",
    script: (asked) => {
      const octets = frame(say(asked, TRUTH));
      let at = 0;
      const next = (): void => {
        asked.socket?.write(octets.subarray(at, ++at));
        if (at < octets.length) setImmediate(next);
      };
      next();
    },
    outcome: `NOERROR ${TRUTH}`,
  },
  silent: { does: "says nothing", script: () => undefined, outcome: "SERVFAIL" },
  honest: {
    does: "tells the truth",
    script: (asked) => asked.send(say(asked, TRUTH)),
    outcome: `NOERROR ${TRUTH}`,
  },
};

/** Does to a query what its first label says. */
export function byFirstLabel(liars: Readonly<Record<string, Liar>>): Script {
  return (asked) => {
    // Probes of the health check ask for the root; any answer will do.
    const liar = liars[asked.name.split(".")[0] ?? ""];
    if (liar === undefined) asked.answer();
    else liar.script(asked);
  };
}
