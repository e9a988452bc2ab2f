/** The page that explains a query's answer: its path through the server, run again on request. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Explanation } from "../../plugin/contract/explanation.ts";
import { post } from "./api.ts";
import { milliseconds } from "./format.ts";
import { isFailure } from "./parts.tsx";

interface Asked {
  readonly name: string;
  readonly type: string;
  readonly client?: string;
  readonly transport?: string;
  readonly listener?: string;
}

const asked = signal<Asked | undefined>(undefined);
const found = signal<Explanation | undefined>(undefined);
const problem = signal("");

export function askWhy({ name, type, client, transport, listener }: Asked): void {
  const question = {
    name,
    type,
    ...(client !== undefined && { client }),
    ...(transport === "tcp" && { transport }),
    ...(listener !== undefined && { listener }),
  };
  asked.value = question;
  found.value = undefined;
  problem.value = "";
  post<Explanation>("explain", question).then(
    (explanation) => {
      if (asked.value === question) found.value = explanation;
    },
    (error: unknown) => {
      if (asked.value === question) problem.value = error instanceof Error ? error.message : String(error);
    },
  );
}

export function WhyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const question = asked.value;
  useEffect(() => {
    const element = dialog.current;
    if (question !== undefined && element?.open === false) element.showModal();
  }, [question]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="why-title"
      onClose={() => {
        asked.value = undefined;
      }}
    >
      <header>
        <h2 id="why-title">
          Why: <code>{question?.name}</code> {question?.type}
        </h2>
        <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {problem.value !== "" && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {found.value === undefined && problem.value === "" && <p role="status">Asking …</p>}
      {found.value !== undefined && <Way explanation={found.value} />}
    </dialog>
  );
}

function Way({ explanation }: { readonly explanation: Explanation }) {
  const { steps, message, error, listener, block, client, plugin } = explanation;
  return (
    <section class="way" tabIndex={0} aria-label="The path of the query">
      <p>
        Asked again now as {client} at <code>{listener}</code>
        {block === undefined ? (
          ", which no server block takes."
        ) : (
          <>
            , server block <code>{block}</code>.
          </>
        )}{" "}
        Not counted, logged or cached.
      </p>
      <p class={isFailure(message?.rcode ?? "") ? "verdict bad" : "verdict"}>
        {message === undefined ? "Nothing is sent" : message.rcode}
        {plugin === undefined ? "" : ` by ${plugin}`}, after {milliseconds(explanation.milliseconds)}.
        {error === undefined ? "" : ` ${error}`}
      </p>
      <ol class="steps">
        {steps.map((step, index) => (
          <li key={index} class={`depth-${Math.min(step.depth, 4)}`}>
            {step.plugin === "aside" ? "" : <strong>{step.plugin}</strong>}{" "}
            {step.plugin === "aside" ? <em>{step.decision}</em> : step.decision}
            {step.milliseconds === undefined ? (
              ""
            ) : (
              <span class="took"> {milliseconds(step.milliseconds)}</span>
            )}
            {step.asked !== undefined && <p>asked for {step.asked}</p>}
            {step.notes.length > 0 && (
              <ul>
                {step.notes.map(({ text }, at) => (
                  <li key={at}>{text}</li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ol>
      {message !== undefined && (
        <>
          <Records title="Answer" records={message.answer} />
          <Records title="Authority" records={message.authority} />
          <Records title="Additional" records={message.additional} />
        </>
      )}
    </section>
  );
}

function Records({ title, records }: { readonly title: string; readonly records: readonly string[] }) {
  if (records.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <pre tabIndex={0}>{records.join("\n")}</pre>
    </>
  );
}
