/** The JSON schema (draft 2020-12) of the API's answers: `GET /api/v1/schema`. A test checks answers against it. */

/** The subset of JSON Schema that is used here. */
export interface Schema {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  /** The schema of other members; `false` forbids them. */
  readonly additionalProperties?: Schema | false;
}

const text: Schema = { type: "string" };
const number: Schema = { type: "number" };
const integer: Schema = { type: "integer" };
const flag: Schema = { type: "boolean" };

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: "null" }] };
}

function list(items: Schema): Schema {
  return { type: "array", items };
}

function counts(): Schema {
  return { type: "object", additionalProperties: number };
}

/** @param optional members that may be absent */
function object(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

const query = object(
  {
    time: number,
    name: text,
    type: text,
    rcode: text,
    client: text,
    workload: text,
    duration: number,
    plugin: text,
    transport: text,
    port: integer,
    id: integer,
    listener: text,
    answers: integer,
    ttl: integer,
    size: integer,
    weight: integer,
    shed: flag,
  },
  ["workload", "ttl", "shed"],
);

const cluster = object({
  domain: text,
  awaited: list(text),
  services: integer,
  families: list({ enum: ["IPv4", "IPv6"] }),
  age: orNull(number),
  state: list(text),
});

const replicaNow = object({
  time: number,
  version: text,
  hostname: text,
  startedAt: number,
  threads: integer,
  rate: number,
  minute: object({
    queries: number,
    hitRatio: orNull(number),
    p50: orNull(number),
    p99: orNull(number),
  }),
  memory: object({ resident: number, limit: orNull(number) }),
});

const nowWithoutHistory = {
  time: number,
  version: text,
  hostname: text,
  startedAt: number,
  threads: integer,
  rate: number,
  minute: object({
    queries: number,
    rcodes: counts(),
    types: counts(),
    hitRatio: orNull(number),
    p50: orNull(number),
    p90: orNull(number),
    p99: orNull(number),
  }),
  clusters: list(cluster),
  memory: object({ resident: number, heap: number, limit: orNull(number) }),
  pauses: object({ p99: number, longest: number }),
  shed: number,
  notReady: list(text),
  troubles: list(object({ plugin: text, block: text, subject: text, reason: text })),
  servedStale: number,
  sampling: object({ interval: integer, missed: number }),
  upstreams: list(
    object(
      {
        plugin: text,
        address: text,
        exchanges: number,
        errors: number,
        failures: counts(),
        mean: orNull(number),
        p99: orNull(number),
        failedChecks: number,
        discarded: number,
      },
      ["failures"],
    ),
  ),
};

const now = object({
  ...nowWithoutHistory,
  history: object({
    step: number,
    points: list(
      object({
        time: number,
        queries: number,
        nxdomain: number,
        errors: number,
        unanswered: number,
        hits: number,
        p50: orNull(number),
        p99: orNull(number),
      }),
    ),
  }),
});

const top = object(
  {
    key: text,
    workload: text,
    queries: number,
    more: number,
    nxdomain: number,
    servfail: number,
    of: list(object({ key: text, workload: text, queries: number }, ["workload"])),
  },
  ["workload"],
);

const diagnostic = object({
  code: text,
  severity: text,
  message: text,
  file: text,
  line: integer,
  column: integer,
});

const service = object({
  domain: text,
  namespace: text,
  name: text,
  type: { enum: ["clusterIP", "headless", "externalName", "missing"] },
  fqdn: text,
  addresses: list(text),
  externalName: text,
  ports: list(text),
  ready: integer,
  notReady: integer,
  publishNotReady: flag,
  endpoints: list(object({ address: text, label: text, ready: flag })),
});

const settings = object({
  level: text,
  levels: list(text),
  tracers: integer,
  traced: orNull(object({ client: text, until: number })),
});

const blocks = list(
  object({
    keys: list(text),
    file: text,
    line: integer,
    listeners: list(text),
    chain: list(object({ name: text, handles: flag })),
  }),
);

const cachedRow = object({
  name: text,
  type: text,
  rcode: text,
  ttl: integer,
  remaining: integer,
  age: integer,
  answers: integer,
  denial: flag,
});

const caches = list(object({ zones: list(text), entries: integer, octets: integer, maxOctets: integer }));

const machineMembers = {
  finished: number,
  namespace: orNull(text),
  memory: object({ resident: orNull(number), peak: orNull(number), limit: orNull(number) }),
  cpu: orNull(
    object({ periods: number, throttledPeriods: number, throttled: number, pressure: orNull(number) }),
  ),
  udp: orNull(
    object({
      received: number,
      receiveBufferErrors: number,
      sendBufferErrors: number,
      socketDrops: number,
    }),
  ),
  conntrack: orNull(
    object({
      entries: orNull(number),
      most: orNull(number),
      dropped: number,
      droppedEarly: number,
      notInserted: number,
    }),
  ),
};

const refusal = orNull(object({ at: number, reason: text, diagnostics: list(diagnostic) }));

/** Answers by path; those to `POST` have the method in front. */
const ANSWERS: Readonly<Record<string, Schema>> = {
  "/api/v1/now": now,
  "/api/v1/machine": object(machineMembers),
  "/api/v1/queries": object({ queries: list(query) }),
  "/api/v1/who": object({
    queries: number,
    clients: list(top),
    names: list(top),
    namespaces: list(top),
    others: object({ clients: number, names: number, namespaces: number }),
  }),
  "/api/v1/names": object({
    clusters: list(object({ domain: text, namespaces: list(object({ name: text, services: integer })) })),
    services: list(service),
    more: flag,
  }),
  "/api/v1/configuration": object({
    file: text,
    text,
    sha512: text,
    inForceSince: number,
    diagnostics: list(diagnostic),
    refused: refusal,
    blocks,
  }),
  "/api/v1/cache": object(
    {
      caches,
      answers: list(cachedRow),
      more: flag,
      overview: object({
        looked: integer,
        newest: list(cachedRow),
        zones: list(object({ zone: text, answers: integer })),
      }),
    },
    ["overview"],
  ),
  "/api/v1/replica": object({ now: replicaNow, sha512: text }),
  "/api/v1/fleet": object({
    sources: list(text),
    replicas: list(
      object({ address: text, now: orNull(replicaNow), sha512: text, problem: text, awaited: flag }),
    ),
  }),
  "/api/v1/session": object({ readNeedsToken: flag, hasToken: flag, signedIn: flag, csrf: text }),
  "/api/v1/settings": settings,
  "POST /api/v1/settings/level": settings,
  "POST /api/v1/settings/trace": settings,
  "POST /api/v1/cache/forget": object({ forgotten: integer }),
};

export const API_SCHEMA: Schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Answers of Portolan's console, by path",
  description:
    "The events of /api/v1/events are 'now' (as /api/v1/now; after the first, with only the newest points of the history) and 'queries' " +
    "({rows: queries, leftOut: number}). The parameter since, the time of a point, makes the first omit earlier points. " +
    "/api/v1/explain answers what `portolan explain -json` prints.",
  type: "object",
  properties: ANSWERS,
};

/** The facts about a server in a capture: parts of the API's answers. Old captures lack the optional ones. */
export const FACTS_SCHEMA: Schema = object({
  now: object(nowWithoutHistory, ["notReady", "troubles", "servedStale"]),
  machine: object(machineMembers, ["cpu", "namespace"]),
  caches,
  configuration: object({ file: text, text, blocks, refused: refusal }, ["refused"]),
});

const probe = object({ path: text, period: number, failures: number, timeout: number });

export const POD_SCHEMA: Schema = object(
  {
    owner: text,
    namespace: text,
    gracePeriod: number,
    preStopSleep: number,
    container: text,
    readiness: probe,
    liveness: probe,
    memoryLimit: number,
  },
  ["readiness", "liveness", "memoryLimit"],
);

export const IMPOSSIBLE_NAME_SCHEMA: Schema = object(
  { name: text, rcode: text, answer: list(text), plugin: text, upstream: text },
  ["upstream"],
);

export const FAILED_NAME_SCHEMA: Schema = object({
  name: text,
  type: text,
  plugin: text,
  rcode: text,
  reason: text,
});
