/**
 * JSON -> protobuf as the API server writes it: an envelope with the type of the object, around its fields under the numbers
 * of Kubernetes' own `generated.proto` files. A writer of its own, so that a wrong number in the reader under test shows.
 */
import { isRecord } from "./resource-types.ts";

type FieldType = "string" | "int" | "bool" | "time" | "labels" | "intOrString" | "message";

export interface Field {
  readonly number: number;
  readonly type: FieldType;
  /** The message's name, where the type is one. */
  readonly message: string;
  readonly isRepeated: boolean;
}

/** `number:type`, with `[]` where it is repeated; what is no plain type is a message of this table. */
const MESSAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ObjectMeta: {
    name: "1:string",
    generateName: "2:string",
    namespace: "3:string",
    uid: "5:string",
    resourceVersion: "6:string",
    generation: "7:int",
    creationTimestamp: "8:time",
    deletionTimestamp: "9:time",
    labels: "11:labels",
    annotations: "12:labels",
    finalizers: "14:string[]",
  },
  ListMeta: { resourceVersion: "2:string", continue: "3:string", remainingItemCount: "4:int" },
  Status: {
    metadata: "1:ListMeta",
    status: "2:string",
    message: "3:string",
    reason: "4:string",
    details: "5:StatusDetails",
    code: "6:int",
  },
  StatusDetails: { name: "1:string", group: "2:string", kind: "3:string", retryAfterSeconds: "5:int" },
  Namespace: { metadata: "1:ObjectMeta", status: "3:NamespaceStatus" },
  NamespaceStatus: { phase: "1:string" },
  Service: { metadata: "1:ObjectMeta", spec: "2:ServiceSpec", status: "3:ServiceStatus" },
  ServiceSpec: {
    ports: "1:ServicePort[]",
    selector: "2:labels",
    clusterIP: "3:string",
    type: "4:string",
    externalIPs: "5:string[]",
    sessionAffinity: "7:string",
    loadBalancerIP: "8:string",
    externalName: "10:string",
    externalTrafficPolicy: "11:string",
    healthCheckNodePort: "12:int",
    publishNotReadyAddresses: "13:bool",
    ipFamilyPolicy: "17:string",
    clusterIPs: "18:string[]",
    ipFamilies: "19:string[]",
    internalTrafficPolicy: "22:string",
  },
  ServicePort: {
    name: "1:string",
    protocol: "2:string",
    port: "3:int",
    targetPort: "4:intOrString",
    nodePort: "5:int",
    appProtocol: "6:string",
  },
  ServiceStatus: { loadBalancer: "1:LoadBalancerStatus" },
  LoadBalancerStatus: { ingress: "1:LoadBalancerIngress[]" },
  LoadBalancerIngress: { ip: "1:string", hostname: "2:string" },
  Pod: { metadata: "1:ObjectMeta", spec: "2:PodSpec", status: "3:PodStatus" },
  PodSpec: {
    nodeName: "10:string",
    hostNetwork: "11:bool",
    hostname: "16:string",
    subdomain: "17:string",
  },
  PodStatus: {
    phase: "1:string",
    conditions: "2:PodCondition[]",
    hostIP: "5:string",
    podIP: "6:string",
    qosClass: "9:string",
    podIPs: "12:PodIP[]",
  },
  PodCondition: { type: "1:string", status: "2:string", reason: "5:string" },
  PodIP: { ip: "1:string" },
  Endpoints: { metadata: "1:ObjectMeta", subsets: "2:EndpointSubset[]" },
  EndpointSubset: {
    addresses: "1:EndpointAddress[]",
    notReadyAddresses: "2:EndpointAddress[]",
    ports: "3:CoreEndpointPort[]",
  },
  EndpointAddress: {
    ip: "1:string",
    targetRef: "2:ObjectReference",
    hostname: "3:string",
    nodeName: "4:string",
  },
  CoreEndpointPort: { name: "1:string", port: "2:int", protocol: "3:string" },
  EndpointSlice: {
    metadata: "1:ObjectMeta",
    endpoints: "2:Endpoint[]",
    ports: "3:EndpointPort[]",
    addressType: "4:string",
  },
  Endpoint: {
    addresses: "1:string[]",
    conditions: "2:EndpointConditions",
    hostname: "3:string",
    targetRef: "4:ObjectReference",
    nodeName: "6:string",
    zone: "7:string",
  },
  EndpointConditions: { ready: "1:bool", serving: "2:bool", terminating: "3:bool" },
  EndpointPort: { name: "1:string", protocol: "2:string", port: "3:int", appProtocol: "4:string" },
  ObjectReference: {
    kind: "1:string",
    namespace: "2:string",
    name: "3:string",
    uid: "4:string",
    apiVersion: "5:string",
  },
};

/** The first octets of every protobuf object. */
export const PREFIX: Buffer = Buffer.from("k8s\0", "latin1");

/** A message on its own: envelope and object. */
export function encodeObject(object: Readonly<Record<string, unknown>>): Buffer {
  return envelope(object, encodeMessage(String(object.kind), object));
}

/** A list: its metadata and its items, which repeat no type. */
export function encodeList(list: Readonly<Record<string, unknown>>, itemKind: string): Buffer {
  const items = Array.isArray(list.items) ? list.items : [];
  return envelope(
    list,
    Buffer.concat([
      lengthDelimited(1, encodeMessage("ListMeta", list.metadata)),
      ...items.map((item) => lengthDelimited(2, encodeMessage(itemKind, item))),
    ]),
  );
}

/** One frame of a watch: its length in four octets, and an event around the enveloped object. */
export function encodeWatchFrame(type: string, object: Readonly<Record<string, unknown>>): Buffer {
  const raw = lengthDelimited(1, encodeObject(object));
  const event = Buffer.concat([lengthDelimited(1, Buffer.from(type)), lengthDelimited(2, raw)]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

function envelope({ apiVersion, kind }: Readonly<Record<string, unknown>>, raw: Buffer): Buffer {
  const type = Buffer.concat([
    lengthDelimited(1, Buffer.from(String(apiVersion))),
    lengthDelimited(2, Buffer.from(String(kind))),
  ]);
  const empty = Buffer.alloc(0);
  return Buffer.concat([
    PREFIX,
    lengthDelimited(1, type),
    lengthDelimited(2, raw),
    lengthDelimited(3, empty),
    lengthDelimited(4, empty),
  ]);
}

function encodeMessage(name: string, value: unknown): Buffer {
  if (!isRecord(value)) return Buffer.alloc(0);
  const parts: Buffer[] = [];
  for (const [key, field] of fieldsOf(name)) {
    const member = value[key];
    if (member === undefined || member === null) continue;
    const values = field.isRepeated && Array.isArray(member) ? member : [member];
    for (const each of values) parts.push(...encodeField(field, each));
  }
  return Buffer.concat(parts);
}

function encodeField({ number, type, message }: Field, value: unknown): Buffer[] {
  switch (type) {
    case "string":
      return [lengthDelimited(number, Buffer.from(String(value)))];
    case "int":
      return [tag(number, 0), varint(Number(value))];
    case "bool":
      return [tag(number, 0), varint(value === true ? 1 : 0)];
    case "time":
      return [lengthDelimited(number, encodeTime(String(value)))];
    case "labels":
      return Object.entries(isRecord(value) ? value : {}).map(([key, text]) =>
        lengthDelimited(
          number,
          Buffer.concat([
            lengthDelimited(1, Buffer.from(key)),
            lengthDelimited(2, Buffer.from(String(text))),
          ]),
        ),
      );
    case "intOrString":
      return [lengthDelimited(number, encodeIntOrString(value))];
    case "message":
      return [lengthDelimited(number, encodeMessage(message, value))];
  }
}

function encodeTime(text: string): Buffer {
  return Buffer.concat([tag(1, 0), varint(Math.floor(Date.parse(text) / 1000)), tag(2, 0), varint(0)]);
}

function encodeIntOrString(value: unknown): Buffer {
  const isText = typeof value === "string";
  return Buffer.concat([
    tag(1, 0),
    varint(isText ? 1 : 0),
    tag(2, 0),
    varint(isText ? 0 : Number(value)),
    lengthDelimited(3, Buffer.from(isText ? value : "")),
  ]);
}

/** The fields of a message by name. */
export function fieldsOf(name: string): [key: string, field: Field][] {
  const fields = MESSAGES[name];
  if (fields === undefined) throw new Error(`no protobuf for ${name}`);
  return Object.entries(fields).map(([key, text]) => [key, parseField(text)]);
}

function parseField(text: string): Field {
  const [number, name = ""] = text.split(":");
  const isRepeated = name.endsWith("[]");
  const message = isRepeated ? name.slice(0, -2) : name;
  const type = PLAIN_TYPES.find((plain) => plain === message) ?? "message";
  return { number: Number(number), type, message, isRepeated };
}

const PLAIN_TYPES = ["string", "int", "bool", "time", "labels", "intOrString"] as const;

function lengthDelimited(number: number, content: Buffer): Buffer {
  return Buffer.concat([tag(number, 2), varint(content.length), content]);
}

function tag(number: number, wireType: number): Buffer {
  return varint(number * 8 + wireType);
}

function varint(value: number): Buffer {
  const octets: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
  while (rest > 0x7fn) {
    octets.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  octets.push(Number(rest));
  return Buffer.from(octets);
}
