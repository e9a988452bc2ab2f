import { signal } from "@preact/signals";
import { countOf } from "../../lib/text/count-of.ts";
import type { NamesView, ServiceRow } from "../api-types.ts";
import { useAnswer } from "./loaded.ts";
import { Problem } from "./parts.tsx";
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
  return (
    <>
      <h1>Names</h1>
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
            placeholder="part of service.namespace"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              text.value = event.currentTarget.value;
            }}
          />
        </label>
        <AskAnyName />
      </form>
      <Problem text={problem} />
      {answer !== undefined && answer.clusters.length === 0 && (
        <p>
          No server block has <code>kubernetes</code>, so there are no names of a cluster. Any name can be
          asked for above.
        </p>
      )}
      {answer !== undefined && answer.services.length === 0 && answer.clusters.length > 0 && (
        <p>
          {namespace.value === "" && text.value === ""
            ? "Choose a namespace, or type a part of a name."
            : "There is no such service."}
        </p>
      )}
      <ul class="services">
        {answer?.services.map((service) => (
          <Service key={service.fqdn} service={service} />
        ))}
      </ul>
      {answer?.more === true && <p class="note">There are more: narrow it down.</p>}
    </>
  );
}

function AskAnyName() {
  const ask = (event: Event): void => {
    const form = event.currentTarget instanceof HTMLElement ? event.currentTarget.closest("form") : null;
    const name = form?.querySelector<HTMLInputElement>("input[name=any]")?.value.trim() ?? "";
    if (name !== "") askWhy({ name, type: "A" });
  };
  return (
    <>
      <label>
        Any name
        <input
          name="any"
          placeholder="www.example.org"
          autocomplete="off"
          spellcheck={false}
          onKeyDown={(event) => {
            if (event.key === "Enter") ask(event);
          }}
        />
      </label>
      <div class="buttons">
        <button type="button" onClick={ask}>
          Ask
        </button>
      </div>
    </>
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
          aria-label={`What it answers: ${fqdn}`}
          onClick={() => askWhy({ name: fqdn, type: "A" })}
        >
          What it answers
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
          {countOf(ready, "endpoint")} ready, {notReady} not.
          {isEmpty ? " The name has no addresses: NODATA." : ""}
          {publishNotReady ? " Those that are not ready are published as well." : ""}
        </p>
      )}
      {endpoints.length > 0 && (
        <details>
          <summary>Endpoints</summary>
          <ul>
            {endpoints.map(({ address, label, ready: isReady }, index) => (
              <li key={index}>
                <code>{address}</code> {label} {isReady ? "ready" : <span class="bad">not ready</span>}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

const WORDS: Readonly<Record<string, string>> = {
  clusterIP: "Cluster address",
  headless: "Headless: the addresses of its endpoints",
  externalName: "Alias",
  missing: "There are endpoints, but no Service",
};
