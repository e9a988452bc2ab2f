/** The frame around every page. Draws only its input, so that the server can draw it as well. */
import type { ComponentChildren } from "preact";
import type { SessionView } from "../api-types.ts";

export const TITLES = {
  now: "Overview",
  queries: "Queries",
  who: "Top clients",
  names: "Services",
  cache: "Cache",
  configuration: "Configuration",
  fleet: "Fleet",
} as const;

export type PageName = keyof typeof TITLES;

export function isPageName(word: string): word is PageName {
  return Object.hasOwn(TITLES, word);
}

const CONNECTION = {
  connecting: "connecting …",
  live: "live",
  lost: "connection lost, reconnecting",
  out: "signed out",
} as const;

export type Connection = keyof typeof CONNECTION;

export interface ShellProps {
  readonly page: PageName;
  readonly hostname: string;
  readonly connection: Connection;
  readonly session: SessionView;
  readonly onSignOut?: () => void;
  readonly children: ComponentChildren;
}

export function Shell({ page, hostname, connection, session, onSignOut, children }: ShellProps) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top-bar">
        <p class="brand">
          Portolan <span>{hostname}</span>
        </p>
        <nav aria-label="Pages">
          <ul>
            {Object.entries(TITLES).map(([name, title]) => (
              <li key={name}>
                <a href={`#/${name}`} aria-current={name === page ? "page" : undefined}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <p class={`connection ${connection}`} role="status">
          {CONNECTION[connection]}
        </p>
        {session.signedIn && (
          <button type="button" class="quiet" onClick={onSignOut}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}
