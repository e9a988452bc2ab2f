/** Turns the values of CoreDNS's Helm chart into the Corefile that the chart makes of them (docs/spec/kube-dns.md#installers). */

/** Values that the chart could not use. The message is one line. */
export class HelmValuesError extends Error {
  override readonly name = "HelmValuesError";
}

const DEFAULT_SERVERS: readonly unknown[] = [
  {
    zones: [{ zone: "." }],
    port: 53,
    plugins: [
      { name: "errors" },
      { name: "health", configBlock: "lameduck 10s" },
      { name: "ready" },
      {
        name: "kubernetes",
        parameters: "cluster.local in-addr.arpa ip6.arpa",
        configBlock: "pods insecure\nfallthrough in-addr.arpa ip6.arpa\nttl 30",
      },
      { name: "prometheus", parameters: "0.0.0.0:9153" },
      { name: "forward", parameters: ". /etc/resolv.conf" },
      { name: "cache", parameters: 30 },
      { name: "loop" },
      { name: "reload" },
      { name: "loadbalance" },
    ],
  },
];

/** @throws HelmValuesError */
export function fromHelmValues(values: unknown): string {
  const { servers, extraConfig } = objectOf(values, "the values");
  const extra = Object.entries(extraConfig === undefined ? {} : objectOf(extraConfig, "extraConfig")).map(
    ([name, value]) => joined(name, objectOf(value ?? {}, `extraConfig.${name}`).parameters),
  );
  const blocks = listOf(servers ?? DEFAULT_SERVERS, "servers").map((server, index) =>
    serverBlock(objectOf(server, `servers[${index}]`), index),
  );
  return [...(extra.length > 0 ? [`${extra.join("\n")}\n`] : []), ...blocks].join("\n");
}

function serverBlock({ zones, port, plugins }: Readonly<Record<string, unknown>>, index: number): string {
  const suffix = port === undefined ? "" : `:${wordOf(port, `servers[${index}].port`)}`;
  const keys = listOf(zones ?? [{ zone: "." }], `servers[${index}].zones`).map((each) => {
    const { zone, scheme } = objectOf(each, `servers[${index}].zones`);
    return `${wordOf(scheme ?? "", "scheme")}${wordOf(zone ?? ".", "zone")}${suffix}`;
  });
  const lines = listOf(plugins ?? [], `servers[${index}].plugins`).map((each) => {
    const { name, parameters, configBlock } = objectOf(each, `servers[${index}].plugins`);
    const first = `    ${joined(wordOf(name, "the name of a plugin"), parameters)}`;
    if (configBlock === undefined || configBlock === null) return first;
    const body = wordOf(configBlock, "configBlock")
      .trimEnd()
      .split("\n")
      .map((text) => (text === "" ? "" : `        ${text}`));
    return [`${first} {`, ...body, "    }"].join("\n");
  });
  return `${keys.length === 0 ? `.${suffix}` : keys.join(" ")} {\n${lines.map((text) => `${text}\n`).join("")}}\n`;
}

function joined(name: string, parameters: unknown): string {
  return parameters === undefined || parameters === null
    ? name
    : `${name} ${wordOf(parameters, `the parameters of ${name}`)}`;
}

function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new HelmValuesError(`${what}: a map was expected`);
  return Object.fromEntries(Object.entries(value));
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new HelmValuesError(`${what}: a list was expected`);
  return value;
}

function wordOf(value: unknown, what: string): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  throw new HelmValuesError(`${what}: a text or number was expected`);
}
