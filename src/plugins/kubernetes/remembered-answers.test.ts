import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "../../../test/support/seeded-random.ts";
import { Name } from "../../dns/name.ts";
import { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterZone } from "../../kubernetes/answers/cluster-zone.ts";
import { addressKey } from "../../kubernetes/objects/addresses.ts";
import type { EndpointSet, Service } from "../../kubernetes/objects/objects.ts";
import { packGroups } from "../../kubernetes/objects/reduce-endpoints.ts";
import { NO_LABELS } from "../../kubernetes/objects/shared-values.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { Fallthrough, type Query, type Reply } from "../../plugin/index.ts";
import { Answer, FakeClock, makeTestQuery } from "../../plugin/testing.ts";
import { KubernetesHandler } from "./handler.ts";

const ZONES = ["cluster.local.", "10.in-addr.arpa.", "d.f.ip6.arpa."].map((zone) => Name.parse(zone));
const KINDS = ["namespaces", "services", "endpoints", "pods"] as const;

function octets(text: string): Uint8Array {
  return parseIpAddress(text) ?? assert.fail(text);
}

function service(namespace: string, name: string, address: string | undefined, alias = ""): Service {
  return {
    namespace,
    name,
    type: alias !== "" ? "externalName" : address === undefined ? "headless" : "clusterIP",
    clusterAddresses: address === undefined ? [] : [octets(address)],
    externalName: alias,
    ports: [{ name: "http", number: 80, protocol: "tcp" }],
    publishNotReadyAddresses: false,
    externalAddresses: [],
  };
}

function slice(namespace: string, name: string, of: string, addresses: readonly string[]): EndpointSet {
  const endpoints = addresses.map((text, at) => ({
    octets: octets(text),
    ready: text.length % 3 !== 0,
    label: at === 0 ? "db-0" : "",
    zone: "",
  }));
  const ports = [{ name: "http", number: 8080, protocol: "tcp" as const }];
  return { namespace, name, service: of, groups: packGroups(endpoints, ports) };
}

/** Counts the answers that it makes. */
class CountingHandler extends KubernetesHandler {
  made = 0;

  protected override remembered(query: Query, zone: ClusterZone, reply: Reply): Reply {
    this.made++;
    return super.remembered(query, zone, reply);
  }
}

class Cluster {
  readonly clock = new FakeClock();
  readonly store = new ClusterStore({ clock: this.clock, kinds: KINDS });
  readonly answers = new ClusterAnswers({
    store: this.store,
    ttl: 5,
    namespacesBySelector: false,
    objectsBySelector: false,
    ignoreEmptyServices: false,
    ownAddresses: () => ["10.0.0.1"],
    zones: ZONES,
    pods: "verified",
    zonal: false,
  });
  readonly handler = new CountingHandler(this.answers, Fallthrough.none);
  /** Drops all memoized answers with each change. */
  readonly #forgetful = new KubernetesHandler(this.answers, Fallthrough.none);

  constructor() {
    this.store.subscribe((change) => {
      this.handler.forgetAnswers(change);
      this.#forgetful.forgetAnswers({ ...change, namespaces: ["all"] });
    });
    for (const kind of KINDS) this.store.markListed(kind);
  }

  /** Whether an answer is computed again. */
  isMade(name: string, type: string): boolean {
    const before = this.handler.made;
    this.ask(name, type).release();
    return this.handler.made > before;
  }

  ask(name: string, type: string): Reply {
    return reply(this.handler, name, type);
  }

  askForgetful(name: string, type: string): Reply {
    return reply(this.#forgetful, name, type);
  }
}

function reply(handler: KubernetesHandler, name: string, type: string): Reply {
  const query = makeTestQuery({ name, type });
  const outcome = handler.handle(query, () => query.fail());
  assert.ok(!(outcome instanceof Promise) && outcome.kind === "reply", `${name} ${type}`);
  return outcome;
}

function text(given: Reply): string {
  const { rcode, answer, authority, additional } = new Answer(given);
  return [rcode, answer.sort(), authority, additional.sort()].join(" | ");
}

describe("remembered answers", () => {
  it("equal those of a handler that memoizes nothing across changes", () => {
    const random = new SeededRandom();
    const cluster = new Cluster();
    const { store, clock } = cluster;
    const namespaces = ["red", "svc"];
    const services = ["a", "b", "pod"];
    const addresses = ["10.0.0.1", "10.0.0.2", "10.1.0.3", "fd00::1"];
    const owners = namespaces.flatMap((namespace) => services.map((name) => ({ namespace, name })));
    const questions = [
      ...owners.flatMap(({ namespace, name }) =>
        ["", "db-0.", "10-0-0-2.", "_http._tcp.", "no.such.name."].flatMap((front) =>
          ["A", "SRV"].map((type) => [`${front}${name}.${namespace}.svc.cluster.local.`, type] as const),
        ),
      ),
      ...["cluster.local.", "10.in-addr.arpa."].flatMap((zone) =>
        ["SOA", "NS"].map((type) => [zone, type] as const),
      ),
      ...namespaces.flatMap((namespace) => [
        [`${namespace}.svc.cluster.local.`, "A"] as const,
        [`${namespace}.pod.cluster.local.`, "A"] as const,
        [`10-0-0-1.${namespace}.pod.cluster.local.`, "A"] as const,
        [`10-0-0-2.${namespace}.pod.cluster.local.`, "A"] as const,
      ]),
      ["ns.dns.cluster.local.", "A"] as const,
      ["x.cluster.local.", "A"] as const,
      ["1.0.0.10.in-addr.arpa.", "PTR"] as const,
      ["2.0.0.10.in-addr.arpa.", "PTR"] as const,
      ["3.0.1.10.in-addr.arpa.", "PTR"] as const,
      [`1.${"0.".repeat(29)}d.f.ip6.arpa.`, "PTR"] as const,
      // Names above addresses exist as long as the addresses do.
      ["0.0.10.in-addr.arpa.", "PTR"] as const,
      ["1.10.in-addr.arpa.", "NS"] as const,
      ["0.0.d.f.ip6.arpa.", "PTR"] as const,
    ];
    const change = () => {
      const { namespace, name } = random.pick(owners);
      switch (random.below(9)) {
        case 0:
          store.put("namespaces", { namespace: "", name: namespace });
          break;
        case 1:
          if (random.below(4) === 0) store.delete("namespaces", { namespace: "", name: namespace });
          break;
        case 2:
          store.put("services", service(namespace, name, random.pick(addresses)));
          break;
        case 3:
          store.put("services", service(namespace, name, undefined));
          break;
        case 4:
          store.put("services", service(namespace, name, undefined, "a.red.svc.cluster.local"));
          break;
        case 5:
          store.delete("services", { namespace, name });
          break;
        case 6:
          store.put("pods", {
            namespace,
            name,
            addresses: [addressKey(octets(random.pick(addresses)))],
            labels: NO_LABELS,
          });
          break;
        case 7:
          store.delete(random.pick(["pods", "endpoints"]), { namespace, name });
          break;
        default:
          store.put(
            "endpoints",
            slice(namespace, name, random.pick(services), addresses.slice(random.below(4))),
          );
      }
    };
    for (let round = 0; round < 150; round++) {
      if (random.below(3) === 0) clock.advance(400);
      change();
      for (const [name, type] of questions) {
        const remembered = text(cluster.ask(name, type));
        assert.equal(
          remembered,
          text(cluster.askForgetful(name, type)),
          `seed ${random.seed}: ${name} ${type}`,
        );
      }
    }
  });

  it("are dropped one service at a time", () => {
    const cluster = new Cluster();
    const { store } = cluster;
    store.put("namespaces", { namespace: "", name: "red" });
    for (let n = 0; n < 100; n++) store.put("services", service("red", `s-${n}`, `10.0.1.${n}`));
    const names = Array.from({ length: 100 }, (_, n) => [
      `s-${n}.red.svc.cluster.local.`,
      `${n}.1.0.10.in-addr.arpa.`,
    ]).flat();
    const type = (name: string) => (name.endsWith("arpa.") ? "PTR" : "A");
    for (const name of names) assert.ok(cluster.isMade(name, type(name)));
    store.put("services", service("red", "s-7", "10.0.2.7"));
    const anew = names.filter((name) => cluster.isMade(name, type(name)));
    assert.deepEqual(anew, ["s-7.red.svc.cluster.local.", "7.1.0.10.in-addr.arpa."]);
  });

  it("that deny a name are kept until the serial changes", () => {
    const cluster = new Cluster();
    cluster.store.put("namespaces", { namespace: "", name: "red" });
    const isMade = () => cluster.isMade("no.red.svc.cluster.local.", "A");
    assert.ok(isMade());
    cluster.store.put("services", service("red", "web", "10.0.0.9"));
    assert.ok(!isMade(), "within the same second");
    cluster.clock.advance(1_000);
    assert.ok(!isMade(), "as long as nothing changes");
    cluster.store.put("services", service("red", "web", "10.0.0.8"));
    assert.ok(isMade());
  });
});
