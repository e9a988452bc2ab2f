/** Breakages of the server itself, made for real: whether the log, `doctor` and the console name the cause. */
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { test } from "node:test";
import { consoleConfiguration, consoleNow, Examination } from "../support/on-call.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const corefile = (port: (name: string) => number, line = ""): string => `.:${port("dns")} {
    bind 127.0.0.1
    reload 2s 0s
    console 127.0.0.1:${port("console")}
    ${line}
    whoami
}
`;

for (const [title, line, reason, place] of [
  ["a typo", "cach 30", /cach/, "Corefile:5:5"],
  ["a value that cannot be built", "forward . nonsense!!", /nonsense!!/, "Corefile:5"],
] as const) {
  test(`a Corefile that is refused at a reload for ${title}: log, console and doctor show the place, and what is in force`, async () => {
    await using server = await Portolan.start((port) => corefile(port));
    server.writeCorefile(corefile(server.portOf, line));
    await untilTrue(async () => (await consoleConfiguration(server)).refused !== null);
    await server.waitForLog(/\[WARNING\] .*the configuration in force since \S+Z stays in force/);
    assert.match(server.log, reason);
    assert.match((await consoleConfiguration(server)).refused?.reason ?? "", reason);
    const doctor = await Examination.of(server);
    assert.match(doctor.words("refused-corefile"), reason);
    assert.ok(doctor.words("refused-corefile").includes(place), doctor.words("refused-corefile"));
    const [command = ""] = doctor.patches("refused-corefile");
    assert.match(command, /^portolan check \S*Corefile$/);
    const { code, output } = await runPortolan(command.split(" ").slice(1), { cwd: server.folder });
    assert.equal(code, 1);
    assert.match(output, reason);
  });
}

test("a server that stands still: doctor says for how long, and the console shows it", async () => {
  await using server = await Portolan.start((port) => corefile(port));
  // The first sample of the event loop has been taken.
  await untilTrue(async () => (await consoleNow(server)).pauses.p99 > 0);
  server.program.kill("SIGSTOP");
  // As long as doctor calls a stall, and longer.
  await wait(1_500);
  server.program.kill("SIGCONT");
  await untilTrue(async () => (await consoleNow(server)).pauses.longest >= 1_000);
  const doctor = await Examination.of(server);
  assert.match(doctor.words("stalls"), /^the server stood still for up to \d{4,} ms/);
});
