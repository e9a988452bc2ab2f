import { signal } from "@preact/signals";
import { countOf } from "../../lib/text/count-of.ts";
import type { CacheAnswer } from "../api-types.ts";
import { post, session } from "./api.ts";
import { count, octets, span } from "./format.ts";
import { useAnswer } from "./loaded.ts";
import { DomainName, fieldText, isFailure, Problem } from "./parts.tsx";
import { TITLES } from "./shell.tsx";

const name = signal("");
const type = signal("");
const result = signal("");

export function CachePage() {
  const { answer, problem, reload } = useAnswer<CacheAnswer>("cache", { name: name.value }, 3_000);
  const look = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    name.value = fieldText(event.currentTarget, "name");
    type.value = fieldText(event.currentTarget, "type").toUpperCase();
    result.value = "";
  };
  const forget = (body: { name: string; below?: boolean; type?: string }): void => {
    post<{ forgotten: number }>("cache/forget", body).then(
      ({ forgotten }) => {
        result.value = `${countOf(forgotten, "answer")} removed.`;
        reload();
      },
      (error: unknown) => {
        result.value = error instanceof Error ? error.message : String(error);
      },
    );
  };
  const mayForget = session.value.signedIn;
  const answers = (answer?.answers ?? []).filter((row) => type.value === "" || row.type === type.value);
  return (
    <>
      <h1>{TITLES.cache}</h1>
      <dl class="tiles">
        {answer?.caches.map(({ zones, entries, octets: taken, maxOctets }) => (
          <div key={zones.join()}>
            <dt>Cache of {zones.join(" ")}</dt>
            <dd>
              <strong>{count(entries)}</strong>{" "}
              <span>
                {entries === 1 ? "answer" : "answers"}, {octets(taken)} of {octets(maxOctets)}
              </span>
            </dd>
          </div>
        ))}
      </dl>
      {answer?.caches.length === 0 && (
        <p>
          No server block has <code>cache</code>.
        </p>
      )}
      <form class="filter" onSubmit={look}>
        <label>
          Name, and all below it
          <input
            name="name"
            key={name.value}
            defaultValue={name.value}
            placeholder="example.org"
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label>
          Type
          <input
            name="type"
            defaultValue={type.value}
            placeholder="all"
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <div class="buttons">
          <button type="submit">Look</button>
          {mayForget && name.value !== "" && (
            <button
              type="button"
              class="quiet"
              onClick={() =>
                forget({ name: name.value, below: true, ...(type.value !== "" && { type: type.value }) })
              }
            >
              Remove {type.value} {type.value === "" ? "" : "of "}
              {name.value} and all below
            </button>
          )}
        </div>
      </form>
      <Problem text={problem} />
      <p class="note" role="status">
        {result.value}
        {!mayForget &&
          (session.value.hasToken ? "Sign in to remove answers." : "Read-only: the console has no token.")}
      </p>
      {answer?.overview !== undefined && <Overview {...answer.overview} />}
      {answer !== undefined && name.value !== "" && answers.length === 0 && <p>No cached answers.</p>}
      {answers.length > 0 && (
        <section class="scroll" aria-label="Cached answers" tabIndex={0}>
          <table>
            <caption class="hidden">Cached answers</caption>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Rcode</th>
                <th scope="col" class="number">
                  Records
                </th>
                <th scope="col" class="number">
                  Age
                </th>
                <th scope="col" class="number">
                  Good for
                </th>
                {mayForget && (
                  <th scope="col">
                    <span class="hidden">Action</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {answers.map((row, index) => (
                <tr key={index}>
                  <td class="name">
                    <DomainName name={row.name} />
                  </td>
                  <td>{row.type}</td>
                  <td class={isFailure(row.rcode) ? "bad" : ""}>{row.rcode}</td>
                  <td class="number">{row.answers}</td>
                  <td class="number">{span(row.age * 1000)}</td>
                  <td class="number">{row.remaining === 0 ? "expired" : span(row.remaining * 1000)}</td>
                  {mayForget && (
                    <td>
                      <button
                        type="button"
                        class="small"
                        aria-label={`Remove ${row.name} ${row.type}`}
                        onClick={() => forget({ name: row.name, type: row.type })}
                      >
                        Remove
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

function Overview({ looked, newest, zones }: NonNullable<CacheAnswer["overview"]>) {
  if (newest.length === 0) return null;
  return (
    <div class="columns">
      <section class="card">
        <h2>Largest zones</h2>
        <ul class="top short">
          {zones.map(({ zone, answers }) => (
            <li key={zone}>
              <button
                type="button"
                class="link"
                onClick={() => {
                  name.value = zone;
                }}
              >
                <DomainName name={zone} />
              </button>
              <span class="number">{countOf(answers, "answer")}</span>
            </li>
          ))}
        </ul>
        <p class="note">Of {countOf(looked, "answer")} that were looked at.</p>
      </section>
      <section class="card">
        <h2>Freshest answers</h2>
        <ul class="top short">
          {newest.map((row, index) => (
            <li key={index}>
              <span class="name">
                <DomainName name={row.name} /> {row.type}{" "}
                <span class={isFailure(row.rcode) ? "bad" : ""}>{row.rcode}</span>
              </span>
              <span class="number">{span(row.age * 1000)} ago</span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
