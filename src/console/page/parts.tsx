/** Small things that several pages show. */
import { Fragment } from "preact";

export function Problem({ text }: { readonly text: string }) {
  if (text === "") return null;
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  );
}

/** What stands in a field of a form, without spaces around it. */
export function fieldText(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === "string" ? value.trim() : "";
}

/** A domain name that is cut behind dots, if it has to be. */
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
