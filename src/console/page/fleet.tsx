import { useEffect, useState } from "preact/hooks";
import type { FleetView } from "../api-types.ts";
import { count, milliseconds, octets, share, span } from "./format.ts";
import { useAnswer } from "./loaded.ts";
import { Problem } from "./parts.tsx";
import { TITLES } from "./shell.tsx";

/** Milliseconds between two requests, and the shorter period while a replica is awaited. */
const PERIOD = 3_000;
const SHORT_PERIOD = 500;

export function FleetPage() {
  const [period, setPeriod] = useState(SHORT_PERIOD);
  const { answer, problem } = useAnswer<FleetView>("fleet", {}, period);
  useEffect(() => {
    if (answer !== undefined)
      setPeriod(answer.replicas.some(({ awaited }) => awaited) ? SHORT_PERIOD : PERIOD);
  }, [answer]);
  if (answer === undefined)
    return (
      <>
        <h1>{TITLES.fleet}</h1>
        <Problem text={problem} />
        {problem === "" && <p>Asking the replicas …</p>}
      </>
    );
  const { replicas, sources } = answer;
  const present = replicas.flatMap(({ now }) => now ?? []);
  const rate = present.reduce((sum, now) => sum + now.rate, 0);
  const queries = present.reduce((sum, now) => sum + now.minute.queries, 0);
  const versions = new Set(replicas.flatMap(({ sha512 }) => (sha512 === "" ? [] : [sha512])));
  const asked = replicas.filter(({ awaited }) => awaited).length;
  const away = replicas.length - present.length - asked;
  return (
    <>
      <h1>{TITLES.fleet}</h1>
      <Problem text={problem} />
      {sources.length === 0 && (
        <p class="note">
          This is the one replica that is known. Write <code>fleet HOST:PORT</code> into the block of{" "}
          <code>console</code> to see all.
        </p>
      )}
      <dl class="tiles">
        <div>
          <dt>Replicas</dt>
          <dd>
            <strong>{present.length}</strong> <span>{counted(away, asked)}</span>
          </dd>
        </div>
        <div>
          <dt>Queries</dt>
          <dd>
            <strong>{count(rate)}/s</strong> <span>{count(queries)} in the last minute</span>
          </dd>
        </div>
        <div>
          <dt>Configurations</dt>
          <dd>
            <strong>{versions.size}</strong>{" "}
            <span>{versions.size > 1 ? "replicas differ" : "the same everywhere"}</span>
          </dd>
        </div>
      </dl>
      <section class="scroll" aria-label="Replicas" tabIndex={0}>
        <table>
          <caption class="hidden">Replicas</caption>
          <thead>
            <tr>
              <th scope="col">Replica</th>
              <th scope="col" class="number">
                Queries
              </th>
              <th scope="col" class="number">
                99 % within
              </th>
              <th scope="col" class="number">
                From the cache
              </th>
              <th scope="col" class="number">
                Memory
              </th>
              <th scope="col">Configuration</th>
              <th scope="col">Version</th>
              <th scope="col" class="number">
                Has run for
              </th>
            </tr>
          </thead>
          <tbody>
            {replicas.map(({ address, now, sha512, problem: reason, awaited }) => (
              <tr key={address}>
                <th scope="row">
                  {now?.hostname ?? ""} <code>{address}</code>
                </th>
                {now === null ? (
                  <td colSpan={7} class={awaited ? "reason" : "bad reason"}>
                    {awaited ? "waiting for its answer" : `away: ${reason}`}
                  </td>
                ) : (
                  <>
                    <td class="number">{count(now.rate)}/s</td>
                    <td class="number">{milliseconds(now.minute.p99)}</td>
                    <td class="number">{share(now.minute.hitRatio)}</td>
                    <td class="number">{octets(now.memory.resident)}</td>
                    <td>
                      <code>{sha512.slice(0, 8)}</code>
                    </td>
                    <td>{now.version}</td>
                    <td class="number">{span(now.time - now.startedAt)}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

function counted(away: number, asked: number): string {
  const parts = [away > 0 ? `${away} away` : "", asked > 0 ? `${asked} asked` : ""].filter(
    (part) => part !== "",
  );
  return parts.length === 0 ? "none away" : `and ${parts.join(", ")}`;
}
