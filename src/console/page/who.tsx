import type { TopRow, WhoView } from "../api-types.ts";
import { count, share } from "./format.ts";
import { useAnswer } from "./loaded.ts";
import { DomainName, Problem } from "./parts.tsx";
import { TITLES } from "./shell.tsx";

export function WhoPage() {
  const { answer, problem } = useAnswer<WhoView>("who", { rows: "40" }, 3_000);
  return (
    <>
      <h1>{TITLES.who}</h1>
      <p class="note">
        The most frequent of the last minutes. Counts halve every ten minutes. + means at least this many.
      </p>
      <Problem text={problem} />
      {answer !== undefined && (
        <div class="columns wide">
          <Top
            title="Clients"
            parameter="client"
            rows={answer.clients}
            others={answer.others.clients}
            total={answer.queries}
            inner="name"
          />
          <Top
            title="Top names"
            parameter="name"
            rows={answer.names}
            others={answer.others.names}
            total={answer.queries}
            inner="client"
          />
          {answer.namespaces.length > 0 && (
            <Top
              title="Namespaces of clients"
              parameter="namespace"
              rows={answer.namespaces}
              others={answer.others.namespaces}
              total={answer.queries}
              inner="name"
            />
          )}
        </div>
      )}
    </>
  );
}

type Parameter = "client" | "name" | "namespace";

function Top({
  title,
  rows,
  others,
  total,
  parameter,
  inner,
}: {
  readonly title: string;
  readonly rows: readonly TopRow[];
  readonly others: number;
  readonly total: number;
  readonly parameter: Parameter;
  readonly inner: Parameter;
}) {
  const id = `top-${parameter}`;
  return (
    <section class="card">
      <h2 id={id}>{title}</h2>
      {rows.length === 0 && others === 0 && <p>No queries yet.</p>}
      <ul class="top" aria-labelledby={id}>
        {rows.map((row) => (
          <li key={row.key}>
            <details>
              <summary>
                <span class="name">
                  <DomainName name={row.workload ?? row.key} />
                  <Failures row={row} />
                </span>
                <Frequency row={row} total={total} />
              </summary>
              <p>
                {row.workload === undefined ? "" : `${row.key}. `}
                {share(row.nxdomain / row.queries)} NXDOMAIN, {share(row.servfail / row.queries)} SERVFAIL.{" "}
                <QueriesOf parameter={parameter} value={row.key}>
                  Its queries
                </QueriesOf>
              </p>
              <ol>
                {row.of.map((each) => (
                  <li key={each.key}>
                    <QueriesOf parameter={inner} value={each.key}>
                      {each.workload ?? each.key}
                    </QueriesOf>{" "}
                    {count(each.queries)}
                  </li>
                ))}
              </ol>
            </details>
          </li>
        ))}
      </ul>
      {others > 0 && (
        <p class="note others">
          All others: {count(others)} <small>{share(total === 0 ? 0 : others / total)}</small>, each rarer
        </p>
      )}
    </section>
  );
}

/** The first few rows of a list, for the first page. */
export function ShortTop({
  title,
  rows,
  total,
  parameter,
}: {
  readonly title: string;
  readonly rows: readonly TopRow[];
  readonly total: number;
  readonly parameter: Parameter;
}) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 && <p>No queries yet.</p>}
      <ol class="top short">
        {rows.map((row) => (
          <li key={row.key}>
            <span class="name">
              <QueriesOf parameter={parameter} value={row.key}>
                {row.workload ?? row.key}
              </QueriesOf>
              <Failures row={row} />
            </span>
            <Frequency row={row} total={total} />
          </li>
        ))}
      </ol>
      <p class="note">
        <a href="#/who">All, with namespaces</a>
      </p>
    </section>
  );
}

/** How often it was asked, and its share of all queries. */
function Frequency({ row, total }: { readonly row: TopRow; readonly total: number }) {
  return (
    <span class="number">
      {count(row.queries)}
      {row.more > 0 ? "+" : ""} <small>{share(total === 0 ? 0 : row.queries / total)}</small>
    </span>
  );
}

/** The share that is marked: occasional denials are normal for resolvers. */
const MARKED = 0.1;

function Failures({ row: { queries, nxdomain, servfail } }: { readonly row: TopRow }) {
  const marks = [
    ...(nxdomain >= MARKED * queries ? [`${share(nxdomain / queries)} NXDOMAIN`] : []),
    ...(servfail >= MARKED * queries ? [`${share(servfail / queries)} SERVFAIL`] : []),
  ];
  return marks.length === 0 ? null : <small class="bad marks">{marks.join(", ")}</small>;
}

function QueriesOf({
  parameter,
  value,
  children,
}: {
  readonly parameter: Parameter;
  readonly value: string;
  readonly children: string;
}) {
  return <a href={`#/queries?${new URLSearchParams([[parameter, value]])}`}>{children}</a>;
}
