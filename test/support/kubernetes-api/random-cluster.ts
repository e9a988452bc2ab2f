/** A cluster in which something changes all the time, and the questions that show all of it. */
import type { SeededRandom } from "../seeded-random.ts";
import type { ApiSimulator } from "./api-simulator.ts";

const NAMESPACES = ["red", "green"];
const NAMES = ["a", "b", "c", "d", "e", "f"];
const ENDPOINTS = 8;

export class RandomCluster {
  readonly #api: ApiSimulator;
  readonly #random: SeededRandom;

  constructor(api: ApiSimulator, random: SeededRandom) {
    this.#api = api;
    this.#random = random;
  }

  /** Makes, changes or deletes one object. */
  change(): void {
    const random = this.#random;
    const namespace = random.pick(NAMESPACES);
    const name = random.pick(NAMES);
    switch (random.below(10)) {
      case 0:
        this.#remove("services", namespace, name);
        break;
      case 1:
        this.#remove("endpointslices", namespace, `${name}-${random.below(2)}`);
        break;
      case 2:
        if (random.below(4) === 0) this.#remove("namespaces", "", namespace);
        break;
      case 3:
        this.#api.put("namespaces", { metadata: { name: namespace } });
        break;
      case 4:
      case 5:
      case 6:
        this.#api.put("services", { metadata: { name, namespace }, spec: this.#serviceSpec() });
        break;
      default:
        this.#putSlice(namespace, name);
    }
  }

  /** Every name that the cluster may have. */
  questions(): { readonly name: string; readonly type: string }[] {
    const questions: { name: string; type: string }[] = [];
    for (const namespace of NAMESPACES) {
      questions.push({ name: `${namespace}.svc.cluster.local.`, type: "A" });
      for (const service of NAMES) {
        const name = `${service}.${namespace}.svc.cluster.local.`;
        questions.push(
          { name, type: "A" },
          { name, type: "SRV" },
          { name: `_http._tcp.${name}`, type: "SRV" },
        );
        for (let n = 0; n < 2; n++) questions.push({ name: `host-${n}.${name}`, type: "A" });
      }
    }
    for (let n = 0; n < ENDPOINTS; n++) questions.push({ name: `${n}.0.0.10.in-addr.arpa.`, type: "PTR" });
    for (let n = 0; n < 16; n++) questions.push({ name: `${n}.0.96.10.in-addr.arpa.`, type: "PTR" });
    return questions;
  }

  #remove(plural: string, namespace: string, name: string): void {
    const { objects } = this.#api.storage.snapshot(this.#api.type(plural));
    const exists = objects.some(
      ({ metadata }) => metadata.name === name && (metadata.namespace ?? "") === namespace,
    );
    if (exists) this.#api.delete(plural, namespace, name);
  }

  #serviceSpec(): Record<string, unknown> {
    const random = this.#random;
    if (random.below(6) === 0) {
      const target = `${random.pick(NAMES)}.${random.pick(NAMESPACES)}.svc.cluster.local`;
      return { type: "ExternalName", externalName: target };
    }
    const clusterIP = random.below(2) === 0 ? "None" : `10.96.0.${random.below(16)}`;
    const ports = [{ name: random.pick(["http", "web"]), port: 80 + random.below(3), protocol: "TCP" }];
    return { clusterIP, clusterIPs: [clusterIP], ports };
  }

  #putSlice(namespace: string, service: string): void {
    const random = this.#random;
    this.#api.put("endpointslices", {
      metadata: {
        name: `${service}-${random.below(2)}`,
        namespace,
        labels: { "kubernetes.io/service-name": service },
      },
      addressType: "IPv4",
      endpoints: Array.from({ length: random.below(4) }, (_, n) => ({
        addresses: [`10.0.0.${random.below(ENDPOINTS)}`],
        conditions: { ready: random.below(5) > 0 },
        ...(n < 2 && random.below(2) === 0 && { hostname: `host-${n}` }),
      })),
      ports: [{ name: "http", port: 80, protocol: "TCP" }],
    });
  }
}
