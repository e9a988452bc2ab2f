/** Zones whose back end, or a hop in front of it, does not answer as it should. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import tls from "node:tls";
import { Rcode } from "../../src/dns/index.ts";
import type { Machine } from "../../src/plugin/contract/site.ts";
import type { PluginDefinition } from "../../src/plugin/index.ts";
import { PluginTest } from "../../src/plugin/testing.ts";
import azure from "../../src/plugins/azure/index.ts";
import clouddns from "../../src/plugins/clouddns/index.ts";
import nomad from "../../src/plugins/nomad/index.ts";
import route53 from "../../src/plugins/route53/index.ts";
import { AzureServer } from "../support/azure-server.ts";
import { CloudDnsServer } from "../support/cloud-dns-server.ts";
import { type Fault, FaultyFront, faults } from "../support/faulty-front.ts";
import { NomadAgent } from "../support/nomad-agent.ts";
import { Route53Server } from "../support/route53-server.ts";
import { untilTime } from "../support/until-true.ts";

const SOA = "ns.test. h.test. 1 2 3 4 5";
/** Addresses of `a0` to `a9`: several pages of every back end. */
const NAMES = Array.from({ length: 10 }, (_, index) => `a${index}`);

interface BackEnd {
  readonly server: AsyncDisposable & { readonly url: string };
  /** The front applies the faults to these paths. */
  readonly paths: RegExp;
  readonly plugin: PluginDefinition<never>;
  readonly corefile: (url: string) => string;
  readonly name: (label: string) => string;
  /** Makes the plugin look again. */
  readonly change?: () => void;
}

const folder = mkdtempSync(join(tmpdir(), "portolan-back-end-faults-"));
const authorities = tls.getCACertificates("default");
after(() => {
  rmSync(folder, { recursive: true });
  tls.setDefaultCACertificates(authorities);
});

const BACK_ENDS: Readonly<Record<string, () => Promise<BackEnd>>> = {
  route53: async () => {
    const server = await Route53Server.start();
    const addresses = NAMES.map((name) => ({
      name: `${name}.example.org.`,
      type: "A",
      values: ["192.0.2.1"],
    }));
    server.zones.set("Z1", [{ name: "example.org.", type: "SOA", values: [SOA] }, ...addresses]);
    return {
      server,
      paths: /rrset/,
      plugin: route53 as unknown as PluginDefinition<never>,
      corefile: (url) =>
        `route53 example.org.:Z1 {\naws_endpoint ${url}\naws_access_key AKIDSTATIC secret\nrefresh 10s\n}`,
      name: (label) => `${label}.example.org.`,
    };
  },
  azure: async () => {
    const server = await AzureServer.start();
    const soaRecord = { host: "ns.test", email: "h.test", serialNumber: 1 };
    const times = { refreshTime: 1, retryTime: 1, expireTime: 1, minimumTTL: 1 };
    const addresses = NAMES.map((name) => ({
      name,
      type: "x/A",
      properties: { ttl: 1, aRecords: [{ ipv4Address: "192.0.2.1" }] },
    }));
    server.zones.set(
      "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.org/all",
      [
        { name: "@", type: "x/SOA", properties: { ttl: 1, soaRecord: { ...soaRecord, ...times } } },
        ...addresses,
      ],
    );
    return {
      server,
      paths: /^\/subscriptions\//,
      plugin: azure as unknown as PluginDefinition<never>,
      corefile: (url) =>
        `azure g:example.org {\nendpoint ${url}\nsubscription s\ntenant t\nclient c\nsecret s3cret\n}`,
      name: (label) => `${label}.example.org.`,
    };
  },
  clouddns: async () => {
    const server = await CloudDnsServer.start();
    const [token, file] = [join(folder, "jwt"), join(folder, "google.json")];
    writeFileSync(token, "jwt");
    writeFileSync(file, server.credentials(token));
    const addresses = NAMES.map((name) => ({
      name: `${name}.example.org.`,
      type: "A",
      ttl: 1,
      rrdatas: ["192.0.2.1"],
    }));
    server.zones.set("p/z", [{ name: "example.org.", type: "SOA", ttl: 1, rrdatas: [SOA] }, ...addresses]);
    return {
      server,
      paths: /^\/dns\//,
      plugin: clouddns as unknown as PluginDefinition<never>,
      corefile: (url) => `clouddns example.org.:p:z {\nendpoint ${url}\ncredentials ${file}\n}`,
      name: (label) => `${label}.example.org.`,
    };
  },
  nomad: async () => {
    const server = await NomadAgent.start();
    const register = () =>
      server.register(...NAMES.map((service) => ({ service, address: "192.0.2.1", port: 80 })));
    register();
    return {
      server,
      paths: /^\/v1\//,
      plugin: nomad as unknown as PluginDefinition<never>,
      corefile: (url) => `nomad {\naddress ${url}\n}`,
      name: (label) => `${label}.default.service.nomad.`,
      change: register,
    };
  },
};

for (const [title, open] of Object.entries(BACK_ENDS)) {
  describe(title, () => {
    const canStartWithout = ["azure", "nomad"].includes(title);
    let backEnd: BackEnd;
    let front: FaultyFront;
    let running: PluginTest<never>[] = [];

    beforeEach(async () => {
      backEnd = await open();
      front = await FaultyFront.start({ target: backEnd.server.url, paths: backEnd.paths });
      const own = "authority" in backEnd.server ? [String(backEnd.server.authority)] : [];
      tls.setDefaultCACertificates([...authorities, front.authority, ...own]);
    });
    afterEach(async () => {
      for (const each of running) await each.stop();
      running = [];
      await front[Symbol.asyncDispose]();
      await backEnd.server[Symbol.asyncDispose]();
    });

    function make(): PluginTest<never> {
      const machine: Machine = {
        hostname: "node",
        environment: { AZURE_AUTHORITY_HOST: backEnd.server.url },
        parallelism: 1,
        descriptors: 1024,
        interfaceAddresses: () => undefined,
        addresses: () => [],
      };
      const made = PluginTest.of(backEnd.plugin, backEnd.corefile(front.url), { site: { machine } });
      running.push(made);
      return made;
    }

    const complaints = (made: PluginTest<never>) =>
      made.log.lines.filter((line) => line.includes("Failed to update zone"));

    async function assertKnown(made: PluginTest<never>): Promise<void> {
      for (const label of NAMES) {
        const { rcode, answer } = await made.ask({ name: backEnd.name(label), type: "A" });
        assert.deepEqual([rcode, answer.length], [Rcode.NOERROR, 1], label);
      }
    }

    /** Known records stay, and the error is logged, until the back end recovers. */
    async function survive(made: PluginTest<never>, spoil: () => void, mend: () => void): Promise<string> {
      const { length } = complaints(made);
      spoil();
      backEnd.change?.();
      await soon(made, () => complaints(made).length > length);
      await assertKnown(made);
      mend();
      const { length: before } = made.log.lines;
      await soon(made, () =>
        made.log.lines.slice(before).some((line) => line.includes("is available again")),
      );
      await assertKnown(made);
      return complaints(made)[length] ?? "";
    }

    for (const passing of [0, 1]) {
      test(`keeps what it knows through every fault of ${passing === 0 ? "the first" : "a later"} answer`, async () => {
        const made = make();
        await made.start();
        await soon(made, () => made.instances[0]?.ready?.() !== false);
        for (const fault of faults) {
          const spoil = () => Object.assign(front, { fault, passing });
          const complaint = await survive(made, spoil, () => Object.assign(front, { fault: undefined }));
          assert.ok(!complaint.includes("\n"), complaint);
          if (fault === "no answer") assert.match(complaint, /no answer within (40s|1m25s)/);
        }
      });
    }

    test("keeps what it knows while certificates do not fit", async () => {
      const made = make();
      await made.start();
      await soon(made, () => made.instances[0]?.ready?.() !== false);
      for (const [whose, words] of [
        ["an unknown authority's", /unable to verify the first certificate|unable to get local issuer/],
        ["another host's", /does not match certificate's altnames|not in the cert's list/],
      ] as const) {
        const complaint = await survive(
          made,
          () => front.present(whose),
          () => front.present("its own"),
        );
        assert.match(complaint, words);
      }
    });

    for (const [what, spoil, words] of [
      [
        "no answer",
        () => Object.assign(front, { fault: "no answer" satisfies Fault }),
        /no answer within 40s/,
      ],
      ["garbage", () => Object.assign(front, { fault: "garbage" satisfies Fault }), /./],
      ["another answer", () => Object.assign(front, { fault: "another answer" satisfies Fault }), /./],
      ["an unknown certificate", () => front.present("an unknown authority's"), /certificate/],
      ["another host's certificate", () => front.present("another host's"), /altnames/],
    ] as const) {
      test(`${canStartWithout ? "starts, and is not ready," : "refuses to start, in one line,"} with ${what}`, async () => {
        spoil();
        const made = make();
        const started = await settled(made, made.start());
        if (canStartWithout) {
          await soon(made, () => complaints(made).length > 0);
          assert.equal(made.instances[0]?.ready?.(), false);
          assert.match(complaints(made)[0] ?? "", words);
        } else {
          assert.match(
            String(started),
            new RegExp(`^SetupError: failed to initialize ${title} plugin: [^\n]+$`),
          );
          assert.match(String(started), words);
        }
      });
    }
  });
}

/** Lets time pass until it is so. */
const soon = (made: PluginTest<never>, isSo: () => boolean): Promise<void> => untilTime(made, 500, isSo);

/** @returns what it failed with */
async function settled(made: PluginTest<never>, work: Promise<unknown>): Promise<unknown> {
  let end: { readonly error: unknown } | undefined;
  work.then(
    () => {
      end = { error: undefined };
    },
    (error: unknown) => {
      end = { error };
    },
  );
  await soon(made, () => end !== undefined);
  return end?.error;
}
