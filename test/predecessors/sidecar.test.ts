/** `portolan sidecar` and `portolan exechealthz`: with the flags of the programs that they stand in for, and a real dnsmasq. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Peer } from "../support/peers.ts";
import { portolan, runPortolan } from "../support/portolan.ts";

/** Asks until the page is as wanted. */
async function page(
  url: string,
  wanted: (status: number, body: string) => boolean,
): Promise<{ status: number; body: string }> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    const found = response && { status: response.status, body: await response.text() };
    if (found !== undefined && (wanted(found.status, found.body) || performance.now() > deadline))
      return found;
    if (performance.now() > deadline) throw new Error(`no answer from ${url}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("the sidecar shows dnsmasq's statistics and probes it", {
  skip: skipWithout("dnsmasq"),
}, async () => {
  await using dnsmasq = await Peer.dnsmasq(["cache-size=1337", "address=/ok.local/192.0.2.1"]);
  for (let count = 0; count < 100; count++) await ask(dnsmasq, "ok.local");
  const port = await freePort();
  await using sidecar = portolan([
    "sidecar",
    "--v=2",
    "--logtostderr",
    "--dnsmasq_port",
    String(dnsmasq.port),
    "--dnsmasq-poll-interval-ms=50",
    `--probe=ok,127.0.0.1:${dnsmasq.port},ok.local,1,A`,
    `--probe=nxdomain,127.0.0.1:${dnsmasq.port},nx.local,1,A`,
    "--prometheus-addr=127.0.0.1",
    `--prometheus-port=${port}`,
  ]);
  const url = `http://127.0.0.1:${port}`;
  const metrics = await page(`${url}/metrics`, (_status, body) =>
    /^kubedns_dnsmasq_hits [1-9]\d\d/m.test(body),
  );
  assert.match(metrics.body, /^kubedns_dnsmasq_hits \d{3,}$/m);
  assert.match(metrics.body, /^kubedns_dnsmasq_max_size 1337$/m);
  assert.match(metrics.body, /^process_resident_memory_bytes \d+/m);
  const ok = await page(`${url}/healthcheck/ok`, (status) => status === 200);
  assert.match(ok.body, /^\{"IsOk":true,"LatencySeconds":[\d.e-]+,"Err":""\}$/);
  const missing = await page(`${url}/healthcheck/nxdomain`, (_status, body) => !body.includes("waiting"));
  assert.deepEqual(
    [missing.status, missing.body],
    [503, '{"IsOk":false,"LatencySeconds":0,"Err":"no answer records"}'],
  );
  assert.deepEqual(await sidecar.stop(), { code: 0, signal: null });
});

test("the sidecar goes on where the name of a server has no address", async () => {
  const port = await freePort();
  await using sidecar = portolan([
    "sidecar",
    "--dnsmasq-addr=nobody.invalid",
    "--dnsmasq-poll-interval-ms=20",
    "--prometheus-addr=127.0.0.1",
    `--prometheus-port=${port}`,
    "--prometheus-path=numbers",
  ]);
  const { body } = await page(`http://127.0.0.1:${port}/numbers`, (_status, text) =>
    /^kubedns_dnsmasq_errors [2-9]/m.test(text),
  );
  assert.match(body, /^kubedns_dnsmasq_errors [2-9]/m);
  assert.deepEqual(await sidecar.stop(), { code: 0, signal: null });
});

test("the sidecar refuses a prefix that no metric can have", async () => {
  const ending = await runPortolan(["sidecar", "--prometheus-namespace=a-b"]);
  assert.equal(ending.code, 2);
  assert.match(ending.errors, /^invalid argument "a-b" for "--prometheus-namespace" flag: metric names/);
});

test("exechealthz runs its commands, and says how they went", async () => {
  const port = await freePort();
  await using program = portolan([
    "exechealthz",
    "-cmd=echo fine; exit 0",
    "-url=/good",
    "-cmd=echo broken >&2; exit 3",
    "-url=/bad",
    "-period=20ms",
    `-port=${port}`,
    "-quiet",
    "-output",
  ]);
  const url = `http://127.0.0.1:${port}`;
  assert.deepEqual(await page(`${url}/good`, (_status, body) => body === "fine\n"), {
    status: 200,
    body: "fine\n",
  });
  const bad = await page(`${url}/bad`, (status) => status === 503);
  assert.match(bad.body, /^Healthz probe error on \/bad: exit status 3; .*broken/);
  assert.match((await page(`${url}/`, () => true)).body, /<a href="\/bad">/);
  assert.equal((await page(`${url}/nope`, () => true)).status, 404);
  await program.waitForErrors(/Healthz probe error on \/bad: exit status 3/);
  assert.doesNotMatch(program.errors, /probe ok/);
  await fetch(`${url}/quit`).catch(() => undefined);
  assert.equal((await program.ended).code, 0);
});

test("exechealthz: a result that is too old does not count", async () => {
  const port = await freePort();
  await using program = portolan(["exechealthz", "-cmd=sleep 30", "-latency=1ms", `-port=${port}`]);
  const old = await page(`http://127.0.0.1:${port}/healthz`, (status) => status === 503);
  assert.match(old.body, /^Healthz probe error on \/healthz: no result within 1 ms/);
  assert.equal((await program.stop()).code, 0);
});

for (const [words, code, message] of [
  [["sidecar", "--probe=a,b"], 2, /^invalid argument "a,b" for "--probe" flag: /],
  [["sidecar", "--bogus"], 2, /^flag provided but not defined: -bogus\n/],
  [["sidecar", "--dnsmasq-port=x"], 2, /^invalid value "x" for flag -dnsmasq-port/],
  [["exechealthz", "-cmd=a", "-cmd=b"], 1, /^there are 2 commands \(-cmd\) and 1 paths \(-url\)/],
  [["exechealthz", "-period=soon"], 2, /^invalid value "soon" for flag -period/],
] as const) {
  test(`${words.join(" ")} ends with ${code} and says why`, async () => {
    const ending = await runPortolan(words);
    assert.equal(ending.code, code);
    assert.match(ending.errors, message);
  });
}
