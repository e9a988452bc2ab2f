/** Which listeners take queries of other classes than IN. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { Portolan } from "../support/portolan.ts";

test("with chaos a listener takes queries of class CH, without it none", {
  skip: skipWithout("dig"),
}, async () => {
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    chaos portolan-test
}
.:${portOf("without")} {
    bind 127.0.0.1
    whoami
}
`,
  );
  const ask = async (label: string) => {
    const { status, answer } = await dig(
      { address: "127.0.0.1", port: server.portOf(label) },
      "version.bind",
      "TXT",
      "CH",
    );
    return [status, ...answer];
  };
  assert.deepEqual(await ask("dns"), ["NOERROR", 'version.bind. 0 CH TXT "portolan-test"']);
  assert.deepEqual(await ask("without"), ["REFUSED"]);
});
