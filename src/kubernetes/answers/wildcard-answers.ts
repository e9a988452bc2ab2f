/**
 * Names with `*` or `any` in place of a label, which stand for every label there: CoreDNS before 1.9 and kube-dns answered them. Each
 * name that is meant is looked up by itself, and the records are shown at the name that was asked.
 */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SRV } from "../../dns/record-table.ts";
import { formatData } from "../../dns/resource-record.ts";
import type { Port } from "../objects/objects.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import type { ClusterAnswers } from "./cluster-answers.ts";
import type { ClusterZone } from "./cluster-zone.ts";
import type { ClusterName } from "./name-grammar.ts";
import { answered, NO_DATA, NO_SERVICE, type Resolution } from "./resolution.ts";
import { aliasRecord } from "./service-answers.ts";

/** Records of one answer: more fit into no message. */
const MAX_RECORDS = 1_000;

/** @returns `undefined` for a name without such a label, or in a place where none has a meaning */
export function resolveWildcard(
  answers: ClusterAnswers,
  owner: Name,
  type: number,
  zone: ClusterZone,
): Resolution | undefined {
  if (zone.isReverse || !owner.labelsAbove(zone.name).some(isWildcardLabel)) return undefined;
  const parsed = answers.parse(owner, zone);
  const { kind } = parsed;
  if (kind === "pod") return resolvePods(answers, owner, type, zone, parsed);
  if (kind !== "service" && kind !== "endpoint" && kind !== "port") return undefined;
  const gathered = new Gathered(owner);
  for (const entry of candidates(answers, parsed)) {
    for (const labels of labelsOf(entry, parsed)) {
      const name = nameOf(zone, [...labels, entry.name, entry.namespace.name, "svc"]);
      gathered.add(name, answers.resolve(name, type, zone), answers.view.ttl);
    }
    if (gathered.isFull) break;
  }
  return gathered.resolution();
}

function isWildcardLabel(label: string): boolean {
  return matchesEverything(label.startsWith("_") ? label.slice(1) : label);
}

/** A label behind its underscore. */
function matchesEverything(label: string): boolean {
  return label === "*" || label === "any";
}

function fits(pattern: string, label: string): boolean {
  return matchesEverything(pattern) || pattern === label;
}

/** The services that are meant: one look-up where their name says so, else all are looked at. */
function* candidates(
  { view }: ClusterAnswers,
  { namespace, service }: ClusterName,
): Generator<IndexedService> {
  const { services } = view.store;
  if (!matchesEverything(namespace) && !matchesEverything(service)) {
    const entry = services.find(namespace, service);
    if (entry !== undefined) yield entry;
    return;
  }
  for (const entry of services.entries()) {
    if (entry.hasService && fits(namespace, entry.namespace.name) && fits(service, entry.name)) yield entry;
  }
}

/** What may stand in front of the service: nothing, endpoints, or ports. */
function labelsOf(entry: IndexedService, { kind, endpoint, port, protocol }: ClusterName): string[][] {
  if (kind === "service") return [[]];
  if (kind === "endpoint") {
    if (!matchesEverything(endpoint)) return [[endpoint]];
    const labels = entry.endpoints.published().map(({ group, index }) => endpointLabel(group, index));
    return [...new Set(labels)].map((label) => [label]);
  }
  const ports: Port[] = [...(entry.service?.ports ?? [])];
  for (const group of entry.endpoints.groups) ports.push(...group.ports);
  const fitting = ports.filter(
    (each) => each.name !== "" && fits(port, each.name) && fits(protocol, each.protocol),
  );
  const texts = new Set(fitting.map((each) => `_${each.name}._${each.protocol}`));
  return [...texts].map((text) => text.split("."));
}

/** The namespace of a pod's name: without its say the address alone decides. */
function resolvePods(
  answers: ClusterAnswers,
  owner: Name,
  type: number,
  zone: ClusterZone,
  { namespace, endpoint }: ClusterName,
): Resolution | undefined {
  if (!matchesEverything(namespace) || matchesEverything(endpoint)) return undefined;
  for (const { name } of answers.view.store.services.existingNamespaces()) {
    const pod = nameOf(zone, [endpoint, name, "pod"]);
    const gathered = new Gathered(owner);
    gathered.add(pod, answers.resolve(pod, type, zone), answers.view.ttl);
    const resolution = gathered.resolution();
    if (resolution.exists) return resolution;
  }
  return NO_SERVICE;
}

function nameOf(zone: ClusterZone, labels: readonly string[]): Name {
  let name = zone.name;
  for (const label of labels.toReversed()) name = name.prepend(label);
  return name;
}

/** The records of several names, each once, as records of one name. */
class Gathered {
  readonly #owner: Name;
  readonly #answer = new Map<string, ResourceRecord>();
  readonly #additional = new Map<string, ResourceRecord>();
  #exists = false;

  constructor(owner: Name) {
    this.#owner = owner;
  }

  get isFull(): boolean {
    return this.#answer.size >= MAX_RECORDS;
  }

  add(name: Name, { exists, answer, additional, alias }: Resolution, ttl: number): void {
    if (!exists) return;
    this.#exists = true;
    if (alias !== undefined) this.#keep(this.#answer, aliasRecord(this.#owner, ttl, alias));
    for (const record of answer)
      this.#keep(this.#answer, record.name.equals(name) ? { ...record, name: this.#owner } : record);
    for (const record of additional) this.#keep(this.#additional, record);
  }

  resolution(): Resolution {
    if (!this.#exists) return NO_SERVICE;
    if (this.#answer.size === 0) return NO_DATA;
    const records = [...this.#answer.values()];
    // Of all of them each gets its share.
    const weight = Math.max(1, Math.floor(100 / records.filter((record) => SRV.is(record)).length));
    const answer = records.map((record) =>
      SRV.is(record) ? { ...record, data: { ...record.data, weight } } : record,
    );
    return answered(answer, [...this.#additional.values()]);
  }

  #keep(records: Map<string, ResourceRecord>, record: ResourceRecord): void {
    records.set(`${record.name} ${record.type} ${keyOf(record)}`, record);
  }
}

/** Without the weight of SRV records, which is shared out anew. */
function keyOf(record: ResourceRecord): string {
  return SRV.is(record) ? `${record.data.target} ${record.data.port}` : formatData(record);
}
