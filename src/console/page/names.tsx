import { signal } from "@preact/signals";
import { countOf } from "../../lib/text/count-of.ts";
import type { ConfigurationAnswer, NamesView, ServiceRow } from "../api-types.ts";
import { useAnswer } from "./loaded.ts";
import { fieldText, Problem } from "./parts.tsx";
import { TITLES } from "./shell.tsx";
import { askWhy } from "./why.tsx";

const namespace = signal("");
const text = signal("");

export function NamesPage() {
  const { answer, problem } = useAnswer<NamesView>(
    "names",
    { namespace: namespace.value, text: text.value },
    5_000,
  );
  const namespaces = [
    ...new Set(answer?.clusters.flatMap((cluster) => cluster.namespaces.map(({ name }) => name)) ?? []),
  ].sort();
  const isOverview = namespace.value === "" && text.value === "";
  return (
    <>
      <h1>{TITLES.names}</h1>
      <form
        class="filter"
        onSubmit={(event) => {
          event.preventDefault();
        }}
      >
        <label>
          Namespace
          <select
            value={namespace.value}
            onChange={(event) => {
              namespace.value = event.currentTarget.value;
            }}
          >
            <option value="">all</option>
            {namespaces.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Service
          <input
            value={text.value}
            placeholder="part of its name"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
        </label>
      </form>
      <Lookup />
      <Problem text={problem} />
      {answer !== undefined && answer.clusters.length === 0 && (
        <p>
          No server block has <code>kubernetes</code>, so there are no names of a cluster. Any name can be
          looked up above.
        </p>
      )}
      {isOverview ? (
        answer !== undefined && <Overview answer={answer} />
      ) : (
        <>
          {answer?.services.length === 0 && answer.clusters.length > 0 && <p>There is no such service.</p>}
          <ul class="services">
            {answer?.services.map((service) => (
              <Service key={service.fqdn} service={service} />
            ))}
          </ul>
          {answer?.more === true && (
            <p class="note">Only the first {answer.services.length} are listed: narrow it down.</p>
          )}
        </>
      )}
    </>
  );
}

const MOST_NAMESPACES = 200;

/** All namespaces with their Services, up to a bound. */
function Overview({ answer }: { readonly answer: NamesView }) {
  const { clusters, services, more } = answer;
  const all = clusters.flatMap(({ domain, namespaces }) =>
    namespaces.filter((each) => each.services > 0).map((each) => ({ ...each, domain })),
  );
  const total = all.reduce((sum, each) => sum + each.services, 0);
  const empty = clusters.reduce((sum, each) => sum + each.namespaces.length, 0) - all.length;
  if (clusters.length === 0) return null;
  return (
    <>
      <p>
        {countOf(total, "Service")} in {countOf(all.length, "namespace")}
        {empty === 0 ? "" : `; ${countOf(empty, "namespace")} without Services`}.
        {more
          ? ` The first ${services.length} are listed: choose a namespace, or type a part of a name.`
          : ""}
      </p>
      {all.slice(0, MOST_NAMESPACES).map(({ domain, name, services: count }) => (
        <Namespace
          key={`${name}.${domain}`}
          name={name}
          domain={clusters.length > 1 ? domain : ""}
          count={count}
          services={services.filter((each) => each.namespace === name && each.domain === domain)}
        />
      ))}
      {all.length > MOST_NAMESPACES && (
        <p class="note">{countOf(all.length - MOST_NAMESPACES, "more namespace")}: type a part of a name.</p>
      )}
    </>
  );
}

interface NamespaceProps {
  readonly name: string;
  /** Empty if there is only one cluster. */
  readonly domain: string;
  readonly count: number;
  readonly services: readonly ServiceRow[];
}

function Namespace({ name, domain, count, services }: NamespaceProps) {
  return (
    <section class="namespace">
      <div class="buttons">
        <h2>
          {name} <small>{countOf(count, "Service")}</small> {domain === "" ? "" : <small>{domain}</small>}
        </h2>
        <button
          type="button"
          class="small"
          aria-label={`Endpoints of ${name}`}
          onClick={() => {
            namespace.value = name;
          }}
        >
          Endpoints
        </button>
      </div>
      {services.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Service</th>
                <th scope="col">Address</th>
                <th scope="col" class="number">
                  Ready
                </th>
              </tr>
            </thead>
            <tbody>
              {services.map((service) => (
                <Row key={service.fqdn} service={service} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ service }: { readonly service: ServiceRow }) {
  const { name, fqdn, type, addresses, externalName, ready, notReady, publishNotReady } = service;
  const target =
    addresses.join(", ") || breakable(externalName) || (type === "headless" ? "headless" : "none");
  return (
    <tr>
      <td class="name">
        <button
          type="button"
          class="link"
          aria-label={`Answers of ${fqdn}`}
          onClick={() => askWhy({ name: fqdn, type: "A" })}
        >
          {name}
        </button>
      </td>
      <td class="name">{target}</td>
      <td class={`number${ready === 0 && notReady > 0 ? " bad" : ""}`}>
        {type === "externalName"
          ? ""
          : publishNotReady
            ? ready + notReady
            : `${ready} of ${ready + notReady}`}
      </td>
    </tr>
  );
}

/** A name that a narrow column breaks behind a dot, rather than within a label. */
function breakable(name: string) {
  if (name === "") return undefined;
  return name.split(".").flatMap((label, index) => (index === 0 ? label : [".", <wbr key={index} />, label]));
}

const TYPES = ["A", "AAAA", "CNAME", "HTTPS", "MX", "NS", "PTR", "SOA", "SRV", "TXT", "ANY"];

/** Asks the server any question, through the listener and over the transport of choice. */
function Lookup() {
  const { answer } = useAnswer<ConfigurationAnswer>("configuration", {});
  const listeners = [...new Set(answer?.blocks.flatMap((block) => block.listeners) ?? [])];
  const ask = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = event.currentTarget;
    const [name, client, listener] = ["any", "client", "listener"].map((field) => fieldText(form, field));
    if (name === undefined || name === "") return;
    askWhy({
      name,
      type: fieldText(form, "type"),
      transport: fieldText(form, "transport"),
      ...(client !== undefined && client !== "" && { client }),
      ...(listener !== undefined && listener !== "" && { listener }),
    });
  };
  return (
    <details class="card">
      <summary>Look up any name</summary>
      <form class="filter" onSubmit={ask}>
        <label>
          Any name
          <input name="any" placeholder="www.example.org" autocomplete="off" spellcheck={false} required />
        </label>
        <label>
          Type
          <select name="type">
            {TYPES.map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
        </label>
        <label>
          Server
          <select name="listener">
            <option value="">that clients would use</option>
            {listeners.map((label) => (
              <option key={label}>{label}</option>
            ))}
          </select>
        </label>
        <label>
          Transport
          <select name="transport">
            <option value="udp">UDP</option>
            <option value="tcp">TCP</option>
          </select>
        </label>
        <label>
          Client
          <input name="client" placeholder="127.0.0.1" autocomplete="off" spellcheck={false} />
        </label>
        <div class="buttons">
          <button type="submit">Ask</button>
        </div>
      </form>
    </details>
  );
}

function Service({ service }: { readonly service: ServiceRow }) {
  const { fqdn, type, addresses, externalName, ports, ready, notReady, publishNotReady, endpoints } = service;
  const isEmpty = type === "headless" && ready === 0 && !(publishNotReady && notReady > 0);
  return (
    <li class="card">
      <h2>
        {service.name} <small>{service.namespace}</small>
      </h2>
      <p>
        <code>{fqdn}</code>{" "}
        <button
          type="button"
          class="small"
          aria-label={`Answers of ${fqdn}`}
          onClick={() => askWhy({ name: fqdn, type: "A" })}
        >
          Answers
        </button>
      </p>
      <p>
        {WORDS[type] ?? type}
        {addresses.length > 0 ? ` at ${addresses.join(", ")}` : ""}
        {externalName === "" ? "" : ` to ${externalName}`}
        {ports.length > 0 ? `, ports ${ports.join(", ")}` : ""}.
      </p>
      {type !== "externalName" && (
        <p class={isEmpty ? "bad" : ""}>
          {publishNotReady
            ? `${countOf(ready + notReady, "endpoint")}, published whether ready or not (publishNotReadyAddresses).`
            : `${countOf(ready, "endpoint")} ready, ${notReady} not.`}
          {isEmpty ? " The name has no addresses: NODATA." : ""}
        </p>
      )}
      {endpoints.length > 0 && (
        <details>
          <summary>Endpoints</summary>
          <ul>
            {endpoints.map(({ address, label, ready: isReady }, index) => (
              <li key={index}>
                <code>{address}</code> {label}{" "}
                {publishNotReady ? "" : isReady ? "ready" : <span class="bad">not ready</span>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

const WORDS: Readonly<Record<string, string>> = {
  clusterIP: "Cluster IP",
  headless: "Headless: the addresses of its endpoints",
  externalName: "Alias",
  missing: "Endpoints without a Service",
};
