import assert from "node:assert/strict";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { EdnsOptionCode, encodeClientSubnet } from "../../dns/index.ts";
import { ConfigRefused, PluginTest, until } from "../../plugin/testing.ts";
import { MmdbFloat, writeMmdb } from "./fixtures/mmdb-writer.ts";
import geoip from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-geoip-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const CAMBRIDGE = {
  city: { names: { en: "Cambridge", de: "Cambridge (England)" } },
  continent: { code: "EU", names: { en: "Europe" } },
  country: { iso_code: "GB", names: { en: "United Kingdom" } },
  location: {
    latitude: new MmdbFloat(52.2242),
    longitude: new MmdbFloat(0.1315),
    time_zone: "Europe/London",
  },
  postal: { code: "CB4" },
  subdivisions: [{ iso_code: "ENG" }, { iso_code: "CAM" }],
};
const CITIES = writeMmdb("GeoLite2-City", {
  "81.2.69.0/24": CAMBRIDGE,
  "192.0.2.0/25": {
    country: { iso_code: "NL", is_in_european_union: true, names: { en: "Netherlands" } },
    location: { latitude: new MmdbFloat(-52.5), longitude: new MmdbFloat(4) },
  },
  "2001:db8::/32": { city: { names: { en: "Auckland" } } },
});
const NETWORKS = writeMmdb("GeoLite2-ASN", {
  "192.0.2.0/24": { autonomous_system_number: 64496, autonomous_system_organization: "Example Ltd." },
});

let files = 0;
function write(content: Uint8Array): string {
  const path = join(folder, `${files++}.mmdb`);
  writeFileSync(path, content);
  return path;
}

/** The labels of a query, without empty ones. */
function labels(running: PluginTest<unknown>, client: string, subnet?: string): Record<string, string> {
  const option =
    subnet === undefined
      ? undefined
      : encodeClientSubnet({ family: 1, sourcePrefixLength: 24, scopePrefixLength: 0, address: subnet });
  const query = running.query({
    name: "a.test.",
    client,
    ...(option !== undefined && {
      edns: { options: [{ code: EdnsOptionCode.COOKIE, data: new Uint8Array(8) }, option] },
    }),
  });
  query.metadata = new Map();
  for (const instance of running.instances) instance.provideMetadata?.(query);
  return Object.fromEntries(
    [...query.metadata.keys()].flatMap((label) => {
      const value = query.metadataValue(label);
      return value === undefined ? [] : [[label, value]];
    }),
  );
}

async function started(content: Uint8Array, block = ""): Promise<PluginTest<unknown>> {
  const running = PluginTest.of(geoip, `geoip ${write(content)} ${block}`);
  await running.start();
  return running;
}

describe("labels", () => {
  test("of a city database", async () => {
    const running = await started(CITIES);
    assert.deepEqual(labels(running, "81.2.69.142"), {
      "geoip/city/name": "Cambridge",
      "geoip/country/code": "GB",
      "geoip/country/name": "United Kingdom",
      "geoip/country/is_in_european_union": "false",
      "geoip/continent/code": "EU",
      "geoip/continent/name": "Europe",
      "geoip/latitude": "52.2242",
      "geoip/longitude": "0.1315",
      "geoip/timezone": "Europe/London",
      "geoip/postalcode": "CB4",
      "geoip/subdivisions/code": "ENG,CAM",
    });
    assert.deepEqual(labels(running, "192.0.2.1"), {
      "geoip/country/code": "NL",
      "geoip/country/name": "Netherlands",
      "geoip/country/is_in_european_union": "true",
      "geoip/latitude": "-52.5",
      "geoip/longitude": "4",
    });
    assert.equal(labels(running, "2001:db8::1")["geoip/city/name"], "Auckland");
    assert.deepEqual(labels(running, "198.51.100.1"), { "geoip/country/is_in_european_union": "false" });
    await running.stop();
  });

  test("of a database of autonomous systems", async () => {
    const running = await started(NETWORKS);
    assert.deepEqual(labels(running, "192.0.2.1"), {
      "geoip/asn/number": "64496",
      "geoip/asn/org": "Example Ltd.",
    });
    assert.deepEqual(labels(running, "198.51.100.1"), { "geoip/asn/number": "0" });
    await running.stop();
  });

  test("by the client subnet, if configured and sent", async () => {
    const running = await started(CITIES, "{\n edns-subnet\n}");
    assert.equal(labels(running, "198.51.100.1", "192.0.2.0")["geoip/country/code"], "NL");
    assert.equal(labels(running, "81.2.69.142")["geoip/country/code"], "GB");
    await running.stop();
    const plain = await started(CITIES);
    assert.equal(labels(plain, "81.2.69.142", "192.0.2.0")["geoip/country/code"], "GB");
    await plain.stop();
  });
});

describe("the file", () => {
  test("is read again when it changes, and never incompletely", async () => {
    const path = write(CITIES);
    const running = PluginTest.of(geoip, `geoip ${path}`);
    await running.start();
    const numberOf = () => labels(running, "192.0.2.1")["geoip/asn/number"];
    assert.equal(numberOf(), undefined);
    writeFileSync(path, NETWORKS);
    running.clock.advance(10_000);
    await until(() => numberOf() === "64496");
    truncateSync(path, 100);
    running.clock.advance(10_000);
    await until(() => running.log.lines.some((line) => line.includes("keeping the previous database")));
    assert.equal(numberOf(), "64496");
    await running.stop();
  });

  for (const [title, content, message] of [
    ["text", Buffer.from("no database at all"), /failed to open database file: error opening database: /],
    [
      "another schema",
      writeMmdb("GeoIP2-Anonymous-IP", {}),
      /database does not provide any supported schema/,
    ],
  ] as const) {
    test(`${title} is refused`, async () => {
      await assert.rejects(started(content), message);
    });
  }

  test("that is missing is refused", async () => {
    const running = PluginTest.of(geoip, `geoip ${join(folder, "nowhere")}`);
    await assert.rejects(running.start(), /failed to open database file: .*nowhere/);
  });
});

for (const [text, message] of [
  ["geoip", /after 'geoip'/],
  ["geoip a b", /after 'b'/],
  ["geoip a {\n foo\n}", /unknown property 'foo'/],
  ["geoip a {\n edns-subnet x\n}", /after 'x'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(geoip, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
