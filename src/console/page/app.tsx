/** The page of the console: its parts, and which of them is shown. */
import { signal } from "@preact/signals";
import { type ComponentType, render } from "preact";
import {
  connection,
  firstView,
  followNow,
  loadSession,
  now,
  PAUSE,
  session,
  signIn,
  signOut,
} from "./api.ts";
import sheet from "./app.css";
import { CachePage } from "./cache.tsx";
import { ConfigurationPage } from "./configuration.tsx";
import { FleetPage } from "./fleet.tsx";
import { NamesPage } from "./names.tsx";
import { NowPage } from "./now.tsx";
import { fieldText } from "./parts.tsx";
import { filter, QueriesPage } from "./queries.tsx";
import { WhoPage } from "./who.tsx";
import { WhyDialog } from "./why.tsx";

const PAGES: readonly { readonly path: string; readonly title: string; readonly Page: ComponentType }[] = [
  { path: "now", title: "Now", Page: NowPage },
  { path: "queries", title: "Queries", Page: QueriesPage },
  { path: "who", title: "Who", Page: WhoPage },
  { path: "names", title: "Names", Page: NamesPage },
  { path: "cache", title: "Cache", Page: CachePage },
  { path: "configuration", title: "Configuration", Page: ConfigurationPage },
  { path: "fleet", title: "Fleet", Page: FleetPage },
];

const path = signal(currentPath());
const signInProblem = signal("");

function currentPath(): string {
  const [page = "", parameters] = location.hash.replace(/^#\//, "").split("?", 2);
  if (page === "queries" && parameters !== undefined)
    filter.value = Object.fromEntries(new URLSearchParams(parameters));
  return page || "now";
}

function App() {
  const needsToken = session.value.readNeedsToken && !session.value.signedIn;
  const page = PAGES.find((each) => each.path === path.value) ?? PAGES[0];
  if (page === undefined) return null;
  const { Page } = page;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top-bar">
        <p class="brand">
          Portolan <span>{now.value?.hostname ?? ""}</span>
        </p>
        <nav aria-label="Pages">
          <ul>
            {PAGES.map((each) => (
              <li key={each.path}>
                <a href={`#/${each.path}`} aria-current={each === page ? "page" : undefined}>
                  {each.title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <p class={`connection ${connection.value}`} role="status">
          {CONNECTION[connection.value]}
        </p>
        {session.value.signedIn && (
          <button type="button" class="quiet" onClick={() => void signOut()}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {needsToken ? <SignIn /> : <Page />}
        {!needsToken && session.value.hasToken && !session.value.signedIn && (
          <details class="card sign-in">
            <summary>Sign in to act</summary>
            <SignIn />
          </details>
        )}
      </main>
      <WhyDialog />
    </>
  );
}

const CONNECTION = {
  connecting: "connecting …",
  live: "live",
  lost: "connection lost, trying again",
} as const;

function SignIn() {
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const token = fieldText(event.currentTarget, "token");
    signIn(token).then(
      () => {
        signInProblem.value = "";
      },
      (error: unknown) => {
        signInProblem.value = error instanceof Error ? error.message : String(error);
      },
    );
  };
  return (
    <form class="filter" onSubmit={submit}>
      <label>
        Token
        <input name="token" type="password" autocomplete="current-password" required />
      </label>
      <div class="buttons">
        <button type="submit">Sign in</button>
      </div>
      {signInProblem.value !== "" && (
        <p class="problem" role="alert">
          {signInProblem.value}
        </p>
      )}
    </form>
  );
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") {
    document.querySelector<HTMLElement>("main")?.focus();
    return;
  }
  path.value = currentPath();
  document.title = `${PAGES.find((each) => each.path === path.value)?.title ?? "Now"} – Portolan`;
  scrollTo(0, 0);
});

// A part of the script: another file to fetch would take as long as all else that the page does until it is shown.
const styles = new CSSStyleSheet();
styles.replaceSync(sheet);
document.adoptedStyleSheets = [styles];

const root = document.querySelector("#app");
if (root !== null) render(<App />, root);
// What follows is asked for when the first frame is there.
requestAnimationFrame(() => setTimeout(firstView === undefined ? begin : followNow));

/** The server may be away just now. */
function begin(): void {
  loadSession().then(
    () => {
      if (!session.value.readNeedsToken || session.value.signedIn) followNow();
    },
    () => {
      connection.value = "lost";
      setTimeout(begin, PAUSE);
    },
  );
}
