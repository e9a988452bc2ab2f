/** A Corefile that cannot be used, beside a running server: what the console and the log say of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigurationAnswer } from "../../src/console/api-types.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

test("the console shows a Corefile that does not parse, with its place, until it is right again", async () => {
  const corefile = (port: (name: string) => number, line = ""): string => `.:${port("dns")} {
    bind 127.0.0.1
    reload 2s 0s
    console 127.0.0.1:${port("console")}
    ${line}
    whoami
}
`;
  await using server = await Portolan.start((port) => corefile(port));
  const refused = async (): Promise<ConfigurationAnswer["refused"]> => {
    const { body } = await server.page("console", "/api/v1/configuration");
    return (JSON.parse(body) as ConfigurationAnswer).refused;
  };
  assert.equal(await refused(), null);
  server.writeCorefile(corefile(server.portOf, "cach 30"));
  await untilTrue(async () => (await refused()) !== null);
  const shown = await refused();
  assert.match(shown?.reason ?? "", /Corefile:5:5: error: .*cach/);
  assert.deepEqual(
    shown?.diagnostics.map(({ file, line, column }) => [file, line, column]),
    [["Corefile", 5, 5]],
  );
  await server.waitForLog(
    /\[ERROR\] plugin\/reload: Corefile changed but reload failed: Corefile:5:5: .*\n(\[ERROR\].*\n)*\[WARNING\] plugin\/reload: the configuration in force since \S+Z stays in force\n/,
  );
  server.writeCorefile(corefile(server.portOf));
  await untilTrue(async () => (await refused()) === null);
  await server.waitForLog(/\[INFO\] plugin\/reload: The Corefile equals the running configuration again\n/);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});
