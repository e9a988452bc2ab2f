/** Small components that several pages share. */
import { Fragment } from "preact";

export function Problem({ text }: { readonly text: string }) {
  if (text === "") return null;
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

/** The text of a form field, trimmed. */
export function fieldText(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === "string" ? value.trim() : "";
}

/** Whether an rcode is neither an answer nor a denial. */
export function isFailure(rcode: string): boolean {
  return rcode !== "NOERROR" && rcode !== "NXDOMAIN";
}

/** A domain name that breaks after dots, if it has to. */
export function DomainName({ name }: { readonly name: string }) {
  const labels = name.split(/(?<=[./])/);
  return (
    <>
      {labels.map((label, index) => (
        <Fragment key={index}>
          {label}
          {index < labels.length - 2 && <wbr />}
        </Fragment>
      ))}
    </>
  );
}
