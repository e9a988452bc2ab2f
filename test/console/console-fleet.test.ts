/** The fleet in the console: replicas behind a headless Service or in a list; one of them goes away. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { FleetView, ReplicaRow } from "../../src/console/api-types.ts";
import { ask } from "../support/dns-client.ts";
import { namedPorts } from "../support/free-ports.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Portolan } from "../support/portolan.ts";

const TOKEN = "a token of the whole fleet";
const HOSTS = ["127.0.2.1", "127.0.2.2", "127.0.2.3"];
const SERVICE = "dns-consoles.kube-system.svc.cluster.local";

/** The consoles of all replicas are on the same port, as in pods. */
const port = (await namedPorts())("console");

function putEndpoints(api: ApiSimulator, addresses: readonly string[]): void {
  api.put("services", {
    metadata: { name: "dns-consoles", namespace: "kube-system" },
    spec: { clusterIP: "None", clusterIPs: ["None"], ports: [{ port, protocol: "TCP" }] },
  });
  api.put("endpointslices", {
    metadata: {
      ...{ name: "dns-consoles-1", namespace: "kube-system" },
      labels: { "kubernetes.io/service-name": "dns-consoles" },
    },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ port, protocol: "TCP" }],
  });
}

function startReplica(api: ApiSimulator, host: string, fleet: string, token = TOKEN): Promise<Portolan> {
  return Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    console ${host}:${port} {
        token_file token
        fleet ${fleet}
    }
    kubernetes cluster.local {
        endpoint ${api.url}
    }
}
`,
    { files: { token } },
  );
}

async function fleetOf(host: string): Promise<FleetView> {
  const response = await fetch(`http://${host}:${port}/api/v1/fleet`);
  assert.equal(response.status, 200);
  return response.json() as Promise<FleetView>;
}

/** Asks until the fleet is as wanted: an answer is good for a second. */
async function eventually(host: string, isWanted: (fleet: FleetView) => boolean): Promise<FleetView> {
  const signal = AbortSignal.timeout(30_000);
  for (;;) {
    const fleet = await fleetOf(host);
    if (isWanted(fleet)) return fleet;
    if (signal.aborted) assert.fail(JSON.stringify(fleet, undefined, 1));
  }
}

function replica(fleet: FleetView, host: string): ReplicaRow {
  const found = fleet.replicas.find(({ address }) => address === `${host}:${port}`);
  assert.ok(found, JSON.stringify(fleet.replicas.map(({ address, problem }) => [address, problem])));
  return found;
}

const allHaveAnswered = ({ replicas }: FleetView): boolean => replicas.every(({ awaited }) => !awaited);

const allPresent = ({ replicas }: FleetView): boolean =>
  replicas.length === 3 && replicas.every(({ now }) => now !== null);

for (const [title, source] of [
  ["behind a headless Service, which the server itself looks up", `${SERVICE}:${port}`],
  ["in a list", HOSTS.map((host) => `${host}:${port}`).join(" ")],
] as const) {
  describe(`replicas ${title}`, () => {
    let api: ApiSimulator;
    let servers: Portolan[] = [];
    before(async () => {
      api = await ApiSimulator.start();
      putEndpoints(api, HOSTS);
      servers = await Promise.all(HOSTS.map((host) => startReplica(api, host, source)));
    });
    after(async () => {
      for (const server of servers) await server[Symbol.asyncDispose]();
      await api?.close();
    });

    test("each shows all, and what each of them does", async () => {
      const [first] = servers;
      assert.ok(first);
      for (let count = 0; count < 5; count++) await ask(first, `${SERVICE}.`);
      for (const host of HOSTS) {
        const fleet = await eventually(
          host,
          (view) => allPresent(view) && (replica(view, HOSTS[0] ?? "").now?.minute.queries ?? 0) >= 5,
        );
        assert.deepEqual(
          fleet.replicas.map(({ address }) => address),
          HOSTS.map((each) => `${each}:${port}`),
        );
        assert.equal(new Set(fleet.replicas.map(({ sha512 }) => sha512)).size, 3, "their Corefiles differ");
      }
    });

    test("one that ends is away, and says why; it is back when it is back", async () => {
      const [one = "", , third = ""] = HOSTS;
      await eventually(one, allPresent);
      await servers.pop()?.[Symbol.asyncDispose]();
      const fleet = await eventually(one, (view) => !allPresent(view));
      assert.equal(fleet.replicas.length, 3);
      assert.match(replica(fleet, third).problem, /ECONNREFUSED/);
      assert.equal(replica(fleet, third).now, null);
      // Nor is it forgotten when the Service has no endpoint for it any more.
      putEndpoints(api, HOSTS.slice(0, 2));
      assert.equal((await fleetOf(one)).replicas.length, 3);
      putEndpoints(api, HOSTS);
      servers.push(await startReplica(api, third, source));
      await eventually(one, allPresent);
    });

    test("a hanging replica is shown as away, and delays no other", async () => {
      const [one = "", two = ""] = HOSTS;
      await eventually(one, allPresent);
      servers[1]?.program.kill("SIGSTOP");
      const fleet = await eventually(one, (view) => !allPresent(view));
      assert.match(replica(fleet, two).problem, /^no answer within 2 s$/);
      servers[1]?.program.kill("SIGCONT");
      await eventually(one, allPresent);
    });
  });
}

test("a replica that hangs from the start delays no other: the others are shown first", async () => {
  await using api = await ApiSimulator.start();
  const [one = "", two = "", three = ""] = HOSTS;
  const list = HOSTS.map((host) => `${host}:${port}`).join(" ");
  await using hanging = await startReplica(api, two, list);
  await using _third = await startReplica(api, three, list);
  hanging.program.kill("SIGSTOP");
  await using _first = await startReplica(api, one, list);
  const isPresent = (view: FleetView, host: string): boolean => replica(view, host).now !== null;
  const first = await eventually(one, (view) => isPresent(view, one) && isPresent(view, three));
  assert.deepEqual([replica(first, two).awaited, replica(first, two).problem], [true, ""]);
  const last = await eventually(one, allHaveAnswered);
  assert.match(replica(last, two).problem, /^no answer within 2 s$/);
  assert.ok(isPresent(last, one) && isPresent(last, three));
  hanging.program.kill("SIGCONT");
});

test("the page tells a port of another program from a closed port", async () => {
  await using api = await ApiSimulator.start();
  const [one = "", two = "", three = ""] = HOSTS;
  const list = HOSTS.map((host) => `${host}:${port}`).join(" ");
  await using _first = await startReplica(api, one, list);
  await using stranger = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {\n bind 127.0.0.1\n whoami\n health ${two}:${port}\n}\n`,
  );
  const fleet = await eventually(one, allHaveAnswered);
  assert.match(replica(fleet, two).problem, /status 404|no console/);
  assert.match(replica(fleet, three).problem, /ECONNREFUSED/);
  assert.ok(!stranger.program.hasEnded);
});

test("an unknown name is shown with its reason", async () => {
  await using api = await ApiSimulator.start();
  const [one = ""] = HOSTS;
  await using _only = await startReplica(api, one, `absent.invalid:${port}`);
  const { replicas } = await eventually(one, allHaveAnswered);
  assert.deepEqual(
    replicas.map(({ address, now }) => [address, now]),
    [[`absent.invalid:${port}`, null]],
  );
  assert.match(replicas[0]?.problem ?? "", /ENOTFOUND|EAI_AGAIN/);
});
