/** Signed queries and transfers with the clients of others. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

const zone = [
  "$TTL 60",
  "@ SOA ns1 host 7 3600 600 86400 60",
  "@ NS ns1",
  "ns1 A 192.0.2.1",
  ...Array.from({ length: 2_000 }, (_, index) => `host-${index} TXT "${"x".repeat(40)}"`),
];

suite("TSIG with the clients of others", { skip: skipWithout("dig", "kdig") }, () => {
  let server: Portolan;
  before(async () => {
    server = await Portolan.start(
      (port) => `example.org:${port("dns")} {
    bind 127.0.0.1
    tsig {
        secrets keys
        require AXFR
    }
    transfer {
        to *
    }
    file db
}
`,
      {
        files: {
          db: `${zone.join("\n")}\n`,
          keys: `key "key.example" {\n\talgorithm hmac-sha256;\n\tsecret "${SECRET}";\n};\n`,
        },
      },
    );
  });
  after(() => server[Symbol.asyncDispose]());

  const ask = async (client: "dig" | "kdig", key: string, ...words: string[]): Promise<string> => {
    const { output } = await run(client, [
      "@127.0.0.1",
      "+norecurse",
      "-p",
      String(server.port),
      "-y",
      key,
      ...words,
    ]);
    return output;
  };

  for (const algorithm of ["hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"]) {
    for (const client of ["dig", "kdig"] as const) {
      test(`${client} with ${algorithm}`, async () => {
        const output = await ask(client, `${algorithm}:key.example:${SECRET}`, "ns1.example.org", "A");
        assert.match(output, /ns1\.example\.org\.\s+60\s+IN\s+A\s+192\.0\.2\.1/);
        assert.doesNotMatch(output, /WARNING|(?<!NO)ERROR|Couldn't verify/);
      });
    }
  }

  for (const client of ["dig", "kdig"] as const) {
    test(`${client} transfers a zone in many messages`, async () => {
      const output = await ask(client, `hmac-sha256:key.example:${SECRET}`, "example.org", "AXFR");
      assert.equal(output.match(/^host-/gm)?.length, 2_000);
      assert.doesNotMatch(output, /WARNING|(?<!NO)ERROR|failed/);
    });
  }

  test("a wrong secret and a wrong key are told apart", async () => {
    assert.match(
      await ask("dig", `hmac-sha256:key.example:${"A".repeat(40)}`, "example.org", "SOA"),
      /BADSIG/,
    );
    assert.match(await ask("dig", `hmac-sha256:other.example:${SECRET}`, "example.org", "SOA"), /BADKEY/);
  });

  test("without a key there is no transfer", async () => {
    const { output } = await run("dig", ["@127.0.0.1", "-p", String(server.port), "example.org", "AXFR"]);
    assert.match(output, /Transfer failed/);
  });
});
