/** Rates, times and shares of the last hour. Draws only its input, so that the server can draw it as well. */
import { countOf } from "../../lib/text/count-of.ts";
import type { HistoryPoint, NowView, UpstreamRow } from "../api-types.ts";
import { Chart } from "./chart.tsx";
import { count, milliseconds, octets, share, span } from "./format.ts";
import { isFailure } from "./parts.tsx";
import { TITLES } from "./shell.tsx";

export interface NowProps {
  readonly view: NowView;
  /** The points of the last hour: the view may have only the newest ones. */
  readonly points: readonly HistoryPoint[];
}

export function Now({ view, points }: NowProps) {
  const { step } = view.history;
  const times = points.slice(0, -1).map(({ time }) => time);
  const perSecond = (values: readonly number[]): number[] => values.slice(0, -1).map((value) => value / step);
  return (
    <>
      <h1>{TITLES.now}</h1>
      <Troubles view={view} />
      <Tiles view={view} />
      <div class="charts">
        <Chart
          title="Queries per second"
          unit="queries/s"
          step={step}
          times={times}
          format={(value) => count(value)}
          lines={[
            { name: "all", colour: 1, values: perSecond(points.map(({ queries }) => queries)) },
            { name: "NXDOMAIN", colour: 2, values: perSecond(points.map(({ nxdomain }) => nxdomain)) },
            {
              name: "errors",
              colour: 3,
              values: perSecond(points.map(({ errors, unanswered }) => errors + unanswered)),
            },
          ]}
        />
        <Chart
          title="Response time"
          unit=""
          step={step}
          times={times}
          format={(value) => milliseconds(value)}
          lines={[
            { name: "median", colour: 1, values: points.slice(0, -1).map(({ p50 }) => p50) },
            { name: "p99", colour: 2, values: points.slice(0, -1).map(({ p99 }) => p99) },
          ]}
        />
      </div>
      <Upstreams rows={view.upstreams} />
      <div class="columns">
        <Shares
          title="Answers, last minute"
          counts={view.minute.rcodes}
          total={view.minute.queries}
          marks={isFailure}
        />
        <Shares title="Query types, last minute" counts={view.minute.types} total={view.minute.queries} />
        <Clusters view={view} />
      </div>
    </>
  );
}

/** What is wrong now, in the words of the log and of `portolan doctor`. */
function Troubles({ view: { notReady, troubles } }: { readonly view: NowView }) {
  if (notReady.length === 0 && troubles.length === 0) return null;
  return (
    <section class="card troubles" aria-labelledby="troubles">
      <h2 id="troubles">Problems</h2>
      {notReady.length > 0 && (
        <p class="bad">Not ready: {notReady.join(", ")}. The server gets no queries through its Service.</p>
      )}
      <ul>
        {troubles.map(({ plugin, block, subject, reason }) => (
          <li key={`${plugin} ${block} ${subject}`}>
            <strong>
              {plugin} {subject}
            </strong>{" "}
            {reason} <small>{block}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tiles({ view }: { readonly view: NowView }) {
  const { minute, memory, pauses, sampling } = view;
  const tiles: readonly (readonly [string, string, string])[] = [
    ["Queries", `${count(view.rate)}/s`, `${count(minute.queries)} in the last minute`],
    ["Median response time", milliseconds(minute.p50), `p99 ${milliseconds(minute.p99)}`],
    ["Cache hits", share(minute.hitRatio), "last minute"],
    [
      "Memory",
      octets(memory.resident),
      memory.limit === null ? `${octets(memory.heap)} of it heap` : `of ${octets(memory.limit)} allowed`,
    ],
    ["Longest stall", milliseconds(pauses.longest), "answers waited this long (busy or throttled CPU)"],
    ["Dropped", count(view.shed), `${view.shed === 1 ? "query" : "queries"}, because too many were pending`],
  ];
  return (
    <>
      <dl class="tiles">
        {tiles.map(([title, value, detail]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              <strong>{value}</strong> <span>{detail}</span>
            </dd>
          </div>
        ))}
      </dl>
      {sampling.interval > 1 && (
        <p class="note">
          There are so many queries that one in {sampling.interval} is looked at; counts are estimates.
        </p>
      )}
    </>
  );
}

function Upstreams({ rows }: { readonly rows: readonly UpstreamRow[] }) {
  if (rows.length === 0) return null;
  return (
    <section class="card">
      <h2 id="upstreams">Upstreams</h2>
      <section class="scroll" aria-labelledby="upstreams" tabIndex={0}>
        <table aria-labelledby="upstreams">
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">Plugin</th>
              <th scope="col" class="number">
                Asked
              </th>
              <th scope="col" class="number">
                Failed
              </th>
              <th scope="col" class="number">
                Mean
              </th>
              <th scope="col" class="number">
                p99
              </th>
              <th scope="col" class="number">
                Failed checks
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.plugin} ${row.address}`}>
                <th scope="row">
                  <code>{row.address}</code>
                </th>
                <td>{row.plugin}</td>
                <td class="number">{count(row.exchanges)}</td>
                <td class={row.errors > 0 ? "number bad" : "number"}>{failuresOf(row)}</td>
                <td class="number">{milliseconds(row.mean)}</td>
                <td class="number">{milliseconds(row.p99)}</td>
                <td class={row.failedChecks > 0 ? "number bad" : "number"}>{count(row.failedChecks)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

/** `161 SERVFAIL`, or the number alone if the server does not report rcodes. */
function failuresOf({ errors, failures = {} }: UpstreamRow): string {
  const rcodes = Object.entries(failures).sort(([, one], [, other]) => other - one);
  if (rcodes.length === 0) return count(errors);
  return rcodes.map(([rcode, failed]) => `${count(failed)} ${rcode}`).join(", ");
}

function Shares({
  title,
  counts,
  total,
  marks = () => false,
}: {
  readonly title: string;
  /** Which bars are red. */
  readonly marks?: (name: string) => boolean;
  readonly counts: Readonly<Record<string, number>>;
  readonly total: number;
}) {
  const rows = Object.entries(counts).sort(([, one], [, other]) => other - one);
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 && <p>No queries yet.</p>}
      <ul class="shares">
        {rows.map(([name, value]) => (
          <li key={name}>
            <span class={marks(name) ? "bad" : undefined}>{name}</span>
            <meter
              class={marks(name) ? "failed" : undefined}
              min={0}
              max={total}
              value={value}
              aria-label={`${name}: ${share(value / total)}`}
            />
            <span class="number">{share(value / total)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Clusters({ view }: { readonly view: NowView }) {
  return (
    <section class="card">
      <h2>This server</h2>
      <dl class="facts">
        <dt>Name</dt>
        <dd>{view.hostname}</dd>
        <dt>Version</dt>
        <dd>Portolan-{view.version}</dd>
        <dt>Uptime</dt>
        <dd>{span(view.time - view.startedAt)}</dd>
        <dt>Threads</dt>
        <dd>{view.threads}</dd>
      </dl>
      {view.clusters.map((cluster) => (
        <section key={cluster.domain}>
          <h3>{cluster.domain}</h3>
          <p>
            {countOf(cluster.services, "service")}.{" "}
            {cluster.awaited.length > 0
              ? `Still waiting for ${cluster.awaited.join(", ")}.`
              : cluster.age === null
                ? "No data yet."
                : `Data as of ${span(cluster.age)} ago.`}
          </p>
        </section>
      ))}
    </section>
  );
}
