import type { ConfigurationAnswer, DiagnosticRow } from "../api-types.ts";
import { dateAndTime } from "./format.ts";
import { useAnswer } from "./loaded.ts";
import { Problem } from "./parts.tsx";
import { Settings } from "./settings.tsx";
import { TITLES } from "./shell.tsx";

export function ConfigurationPage() {
  const { answer, problem } = useAnswer<ConfigurationAnswer>("configuration", {}, 5_000);
  if (answer === undefined)
    return (
      <>
        <h1>{TITLES.configuration}</h1>
        <Problem text={problem} />
      </>
    );
  const { file, text, sha512, inForceSince, diagnostics, refused, blocks } = answer;
  return (
    <>
      <h1>{TITLES.configuration}</h1>
      <Problem text={problem} />
      {refused !== null && (
        <section class="card problem" aria-labelledby="refused">
          <h2 id="refused">The last reload was refused</h2>
          <p>{dateAndTime(refused.at)}. What was in force before goes on.</p>
          <pre tabIndex={0}>{refused.reason}</pre>
        </section>
      )}
      <p class="note">
        In force since {dateAndTime(inForceSince)}, version <code title={sha512}>{sha512.slice(0, 12)}</code>.
      </p>
      <Settings />
      <section class="card">
        <h2>{file}</h2>
        <Corefile
          text={text}
          diagnostics={diagnostics.filter((each) => each.file === file || each.file.endsWith(`/${file}`))}
        />
      </section>
      <section class="card">
        <h2>Chains</h2>
        <p>
          Queries pass the plugins in this order, whatever the order in the file. Plugins in brackets handle
          no queries.
        </p>
        {blocks.map(({ keys, line, listeners, chain }) => (
          <section key={`${line} ${keys.join()}`}>
            <h3>{keys.join(" ")}</h3>
            <p>
              Line {line}, at {listeners.join(", ")}
            </p>
            <ol class="chain">
              {chain.map(({ name, handles }, index) => (
                <li key={index}>{handles ? name : `(${name})`}</li>
              ))}
            </ol>
          </section>
        ))}
      </section>
    </>
  );
}

function Corefile({
  text,
  diagnostics,
}: {
  readonly text: string;
  readonly diagnostics: readonly DiagnosticRow[];
}) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <section class="scroll" aria-label="Corefile" tabIndex={0}>
      <ol class="corefile">
        {lines.map((line, index) => {
          const own = diagnostics.filter((each) => each.line === index + 1);
          return (
            <li key={index} class={own.length > 0 ? "marked" : ""}>
              <code>{line === "" ? " " : line}</code>
              {own.map(({ code, message, severity }) => (
                <p key={code}>
                  {severity}: {message}
                </p>
              ))}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
