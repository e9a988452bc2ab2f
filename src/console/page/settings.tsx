/** The settings that can be changed while the server runs. */
import { useState } from "preact/hooks";
import type { SettingsView } from "../api-types.ts";
import { post, session } from "./api.ts";
import { clock } from "./format.ts";
import { useAnswer } from "./loaded.ts";
import { fieldText, Problem } from "./parts.tsx";

export function Settings() {
  const { answer, problem, reload } = useAnswer<SettingsView>("settings", {}, 5_000);
  const [refusal, setRefusal] = useState("");
  if (answer === undefined) return <Problem text={problem} />;
  const { level, levels, tracers, traced } = answer;
  const mayAct = session.value.signedIn;
  const send = (path: string, body: object): void => {
    post<SettingsView>(`settings/${path}`, body).then(
      () => {
        setRefusal("");
        reload();
      },
      (error: unknown) => setRefusal(error instanceof Error ? error.message : String(error)),
    );
  };
  const trace = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const minutes = Number(fieldText(event.currentTarget, "minutes"));
    send("trace", { client: fieldText(event.currentTarget, "client"), minutes });
  };
  return (
    <section class="card" aria-labelledby="settings">
      <h2 id="settings">Runtime settings</h2>
      <p class="note">
        A reload goes back to the Corefile.
        {!mayAct &&
          (session.value.hasToken ? " Sign in to change it." : " Read-only: the console has no token.")}
      </p>
      <Problem text={problem || refusal} />
      <p>
        The log begins at <strong>{level}</strong>.{" "}
        {tracers === 0
          ? "No server block has the plugin trace."
          : traced === null
            ? "Only the Corefile's rules trace queries."
            : `All queries of ${traced.client} are traced until ${clock(traced.until)}.`}
      </p>
      {mayAct && (
        <div class="filter">
          <label>
            Level of the log
            <select value={level} onChange={(event) => send("level", { level: event.currentTarget.value })}>
              {levels.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
        </div>
      )}
      {mayAct && tracers > 0 && (
        <form class="filter" onSubmit={trace}>
          <label>
            Trace all queries of
            <input name="client" placeholder="10.1.2.3 or 10.1.0.0/16" required autocomplete="off" />
          </label>
          <label>
            For minutes
            <input name="minutes" type="number" min="1" max="1440" defaultValue="10" required />
          </label>
          <div class="buttons">
            <button type="submit">Trace</button>
            {traced !== null && (
              <button type="button" class="quiet" onClick={() => send("trace", { client: "" })}>
                End
              </button>
            )}
          </div>
        </form>
      )}
    </section>
  );
}
