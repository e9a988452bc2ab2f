/** Breakages of upstreams, made for real: whether the log, `explain`, `doctor` and the console name the cause. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Examination, explain, troublesOf } from "../support/on-call.ts";
import { Peer } from "../support/peers.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const SERVFAIL = 2;

/** Takes queries and never answers. */
const mute = createSocket("udp4");
let refusing: number;
/** A resolver that cannot resolve: what it would ask does not answer. */
let failing: Peer;
let slow: ScriptedServer;
let leaving: Peer;
let server: Portolan;
let doctor: Examination;
const muteAddress = (): string => `127.0.0.1:${mute.address().port}`;

before(async () => {
  mute.bind(0, "127.0.0.1");
  await once(mute, "listening");
  refusing = await freePort();
  failing = await Peer.unbound([], [`local-zone: "failing.test." always_refuse`]);
  slow = await ScriptedServer.start((asked) => {
    setTimeout(() => asked.answer({ answer: [`${asked.name} 60 IN A 192.0.2.2`] }), 400);
  });
  leaving = await Peer.unbound(["www.stale.test. 1 IN A 192.0.2.3"]);
  server = await Portolan.start((port) => {
    const block = (zone: string, to: string, more = ""): string =>
      `${zone}:${port("dns")} {\n    bind 127.0.0.1\n    errors\n    forward . ${to}\n${more}}\n`;
    return `.:${port("dns")} {
    bind 127.0.0.1
    errors
    console 127.0.0.1:${port("console")}
    whoami
}
${block("refusing.test", `127.0.0.1:${refusing}`)}${block("mute.test", muteAddress())}${block("failing.test", `127.0.0.1:${failing.port}`)}${block("slow.test", slow.text)}${block("stale.test", `127.0.0.1:${leaving.port}`, "    cache 30 {\n        serve_stale 1h\n    }\n")}`;
  });
  const asked = [ask(server, "www.stale.test.")];
  for (let round = 0; round < 12; round++) {
    for (const zone of ["refusing", "failing", "slow"]) asked.push(ask(server, `n${round}.${zone}.test.`));
  }
  // It takes six seconds until a query is given up.
  const silent = ask(server, "www.mute.test.");
  await Promise.all(asked);
  await leaving[Symbol.asyncDispose]();
  await untilTrue(async () => (await ask(server, "www.stale.test.")).answer[0]?.ttl === 0);
  for (let round = 0; round < 10; round++) await ask(server, "www.stale.test.");
  assert.equal((await silent).rcode, SERVFAIL);
  doctor = await Examination.of(server);
});
after(async () => {
  mute.close();
  await server?.[Symbol.asyncDispose]();
  await slow?.stop();
  for (const peer of [failing, leaving]) await peer?.[Symbol.asyncDispose]();
});

test("an upstream that refuses connections", async () => {
  const address = `127.0.0.1:${refusing}`;
  assert.match(
    server.log,
    new RegExp(`\\[ERROR\\] plugin/errors: 2 n\\d+\\.refusing\\.test\\. A: .*${address}.*connection refused`),
  );
  assert.match(await explain(server, "www.refusing.test"), new RegExp(`${address}.*connection refused`));
  assert.match(await troublesOf(server), new RegExp(`^forward ${address}: .*connection refused`, "m"));
  assert.match(
    doctor.words("failing-upstream"),
    new RegExp(`^forward to ${address} +no answer to any query.*connection refused`, "m"),
  );
});

test("an upstream that is mute", async () => {
  assert.match(server.log, new RegExp(`www\\.mute\\.test\\. A: .*${muteAddress()}: i/o timeout`));
  assert.match(await explain(server, "www.mute.test"), new RegExp(`${muteAddress()}.*(no answer|timeout)`));
  assert.match(await troublesOf(server), new RegExp(`^forward ${muteAddress()}: .*timeout`, "m"));
  assert.match(
    doctor.words("failing-upstream"),
    new RegExp(`^forward to ${muteAddress()} +no answer to any query.*timeout`, "m"),
  );
});

test("an upstream that answers REFUSED", async () => {
  const address = `127.0.0.1:${failing.port}`;
  assert.match(await explain(server, "www.failing.test"), new RegExp(`${address} answers REFUSED`));
  assert.match(
    doctor.words("failing-upstream"),
    new RegExp(`^forward to ${address} +1\\d of 1\\d answers .*had SERVFAIL, REFUSED`, "m"),
  );
});

test("an upstream that is slow", async () => {
  assert.match(
    await explain(server, "www.slow.test"),
    /answers NOERROR after [4-9]\d\d(\.\d+)? ms|after [1-9]\d{3} ms/,
  );
  // Where the machine is so busy that the server itself may be the reason, doctor says that instead.
  if (doctor.codes.includes("slow-upstream"))
    assert.match(
      doctor.words("slow-upstream"),
      new RegExp(`^forward to ${slow.text} +\\d+ ms over 12 exchanges`, "m"),
    );
  else assert.match(doctor.notExamined("slow-upstream"), /the server itself is late/);
});

test("answers that are served stale hide an upstream that is gone: explain looks behind the cache", async () => {
  const text = await explain(server, "www.stale.test");
  assert.match(text, /expired \d+ s ago; served stale/);
  assert.match(
    text,
    new RegExp(`behind the cache: .*[^]*127\\.0\\.0\\.1:${leaving.port}.*connection refused`),
  );
  assert.match(doctor.words("stale-answers"), /^\d+ queries \(.*\) got an expired answer from the cache/);
  assert.match(
    doctor.words("failing-upstream"),
    new RegExp(`^forward to 127\\.0\\.0\\.1:${leaving.port} `, "m"),
  );
});

test("a resolv.conf without a nameserver prevents the start, and the reason names the file", async () => {
  await assert.rejects(
    Portolan.start((port) => `.:${port("dns")} {\n    bind 127.0.0.1\n    forward . resolv.conf\n}`, {
      files: { "resolv.conf": "search example.org\n" },
    }),
    /resolv\.conf/,
  );
});

test("a forwarding loop ends the server, and the log names it", async () => {
  const port = await freePort();
  const text = `.:${port} {\n    bind 127.0.0.1\n    loop\n    forward . 127.0.0.1:${port}\n}\n`;
  const { code, output } = await runPortolan(["-conf", "stdin"], { input: text });
  assert.notEqual(code, 0);
  assert.match(output, /plugin\/loop: Loop \(127\.0\.0\.1:\d+ -> [\d.:]+\) detected for zone "\."/);
});
