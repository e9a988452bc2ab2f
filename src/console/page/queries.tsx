import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { countOf } from "../../lib/text/count-of.ts";
import type { QueryRow } from "../api-types.ts";
import { connection, followQueries, get, now } from "./api.ts";
import { clock, milliseconds } from "./format.ts";
import { DomainName, fieldText, isFailure } from "./parts.tsx";
import { TITLES } from "./shell.tsx";
import { askWhy } from "./why.tsx";

const FIELDS = [
  { name: "name", label: "Name", hint: "part of it, or example.org. for the whole zone" },
  { name: "namespace", label: "Namespace", hint: "of the client" },
  { name: "workload", label: "Workload", hint: "namespace/pod" },
  { name: "client", label: "Client", hint: "10.0.0.7 or 10.0.0.0/8" },
  { name: "type", label: "Type", hint: "AAAA" },
  { name: "rcode", label: "Rcode", hint: "NXDOMAIN, error, -" },
  { name: "slower", label: "Slower than", hint: "20ms" },
  { name: "by", label: "Answered by", hint: "cache" },
  { name: "from", label: "From", hint: "", type: "datetime-local" },
  { name: "to", label: "To", hint: "", type: "datetime-local" },
] as const satisfies readonly {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly type?: string;
}[];

/** The server's parameters: browsers give local times without a zone. */
function parametersOf(wanted: Filter): Filter {
  const times = (["from", "to"] as const).flatMap((name) => {
    const time = new Date(wanted[name] ?? "").getTime();
    return Number.isNaN(time) ? [] : [[name, String(time)]];
  });
  return { ...wanted, ...Object.fromEntries(times) };
}

type Filter = Readonly<Record<string, string>>;

export const filter = signal<Filter>({});
/** A row keeps its number while others are inserted in front: its buttons keep the focus. */
interface NumberedRow {
  readonly number: number;
  readonly row: QueryRow;
}

const rows = signal<readonly NumberedRow[]>([]);
let lastNumber = 0;
const paused = signal(false);
const leftOut = signal(0);
const problem = signal("");

/** The filter of the shown rows. */
let shown: Filter | undefined;

const MOST_ROWS = 300;

function numbered(row: QueryRow): NumberedRow {
  return { number: ++lastNumber, row };
}

export function QueriesPage() {
  const wanted = filter.value;
  const stopped = paused.value;
  const isLost = connection.value === "lost";
  const interval = now.value?.sampling.interval ?? 1;
  useEffect(() => {
    if (stopped || isLost) return undefined;
    let end: (() => void) | undefined;
    let isOver = false;
    problem.value = "";
    get<{ queries: QueryRow[] }>("queries", parametersOf(wanted)).then(
      ({ queries }) => {
        if (isOver) return;
        // Queries that were missed while the page was not following are inserted in front.
        const newest = shown === wanted ? (rows.value[0]?.row.time ?? 0) : 0;
        const missed = queries.filter(({ time }) => time > newest).map(numbered);
        rows.value = (newest === 0 ? missed : [...missed, ...rows.value]).slice(0, MOST_ROWS);
        shown = wanted;
        end = followQueries(parametersOf(wanted), (added, missed) => {
          rows.value = [...[...added].reverse().map(numbered), ...rows.value].slice(0, MOST_ROWS);
          leftOut.value += missed;
        });
      },
      (error: unknown) => {
        problem.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => {
      isOver = true;
      end?.();
    };
  }, [wanted, stopped, isLost]);
  return (
    <>
      <h1>{TITLES.queries}</h1>
      <FilterForm />
      {problem.value !== "" && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <p class="note">
        <span role="status">{stopped ? "Paused." : isLost ? "Waiting for the server." : "Live."}</span>{" "}
        {countOf(rows.value.length, "query", "queries")}
        {leftOut.value > 0 ? `, ${leftOut.value} not shown` : ""}. <Export format="csv" />{" "}
        <Export format="json" />
        {interval > 1 ? ` Sampled: 1 in ${interval}, plus every failure.` : ""}
      </p>
      <section class="scroll" aria-label="Queries" tabIndex={0}>
        <table class="queries">
          <caption class="hidden">Finished queries, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Name</th>
              <th scope="col">Type</th>
              <th scope="col">Rcode</th>
              <th scope="col">Client</th>
              <th scope="col">By</th>
              <th scope="col" class="number">
                Took
              </th>
              <th scope="col">
                <span class="hidden">Explanation</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.value.map(({ number, row }) => (
              <Row key={number} row={row} />
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

/** What the server still has of the queries that are shown, and of those before. */
function Export({ format }: { readonly format: "csv" | "json" }) {
  const wanted = Object.entries({ ...parametersOf(filter.value), rows: "1000", format }).filter(
    ([, value]) => value !== "",
  );
  return (
    <a href={`api/v1/queries?${new URLSearchParams(wanted)}`} download={`queries.${format}`}>
      {format.toUpperCase()}
    </a>
  );
}

function Row({ row }: { readonly row: QueryRow }) {
  return (
    <tr>
      <td>{clock(row.time, true)}</td>
      <td class="name">
        <DomainName name={row.name} />
      </td>
      <td>{row.type}</td>
      <td class={isFailure(row.rcode) ? "bad" : ""}>
        {row.rcode === "-" ? (row.shed === true ? "dropped" : "no reply") : row.rcode}
        {row.rcode === "NOERROR" && row.answers === 0 ? " (empty)" : ""}
      </td>
      <td class="name">
        <DomainName name={row.workload ?? row.client} />
      </td>
      <td>{row.plugin === "" ? "–" : row.plugin}</td>
      <td class="number">{milliseconds(row.duration)}</td>
      <td>
        <button
          type="button"
          class="small"
          onClick={() => askWhy(row)}
          aria-label={`Why: ${row.name} ${row.type}`}
        >
          Why
        </button>
      </td>
    </tr>
  );
}

function FilterForm() {
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = event.currentTarget;
    const entries = FIELDS.map(({ name }) => [name, fieldText(form, name)]);
    leftOut.value = 0;
    filter.value = Object.fromEntries(entries);
  };
  const clear = (): void => {
    leftOut.value = 0;
    filter.value = {};
  };
  return (
    <form class="filter queries-filter" onSubmit={submit} key={JSON.stringify(filter.value)}>
      <input id="more-fields" type="checkbox" class="hidden" aria-label="All filters" />
      {FIELDS.map(({ name, label, hint, ...others }) => (
        <label key={name}>
          {label}
          <input
            name={name}
            {...others}
            placeholder={hint}
            defaultValue={filter.value[name] ?? ""}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      ))}
      <div class="buttons">
        <button type="submit">Filter</button>
        <button type="button" class="quiet" onClick={clear}>
          All
        </button>
        <label for="more-fields" class="more-fields" aria-hidden="true">
          More filters
        </label>
        <button
          type="button"
          class="quiet"
          aria-pressed={paused.value}
          onClick={() => {
            paused.value = !paused.value;
          }}
        >
          {paused.value ? "Resume" : "Pause"}
        </button>
      </div>
    </form>
  );
}
