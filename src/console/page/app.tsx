/** The page of the console: its parts, and the one that is shown. */
import { signal } from "@preact/signals";
import { type ComponentType, hydrate, render } from "preact";
import {
  connection,
  followNow,
  hasFirstView,
  leave,
  loadSession,
  mayRead,
  now,
  PAUSE,
  session,
  signIn,
  signOut,
  takeFirstView,
} from "./api.ts";
import { CachePage } from "./cache.tsx";
import { ConfigurationPage } from "./configuration.tsx";
import { FleetPage } from "./fleet.tsx";
import { NamesPage } from "./names.tsx";
import { NowPage } from "./now-page.tsx";
import { fieldText } from "./parts.tsx";
import { filter, QueriesPage } from "./queries.tsx";
import { isPageName, type PageName, Shell, TITLES } from "./shell.tsx";
import { WhoPage } from "./who.tsx";
import { WhyDialog } from "./why.tsx";

const PAGES: Readonly<Record<PageName, ComponentType>> = {
  now: NowPage,
  queries: QueriesPage,
  who: WhoPage,
  names: NamesPage,
  cache: CachePage,
  configuration: ConfigurationPage,
  fleet: FleetPage,
};

const shown = signal(currentPage());
const signInProblem = signal("");

function currentPage(): PageName {
  const [page = "", parameters] = location.hash.replace(/^#\//, "").split("?", 2);
  if (page === "queries" && parameters !== undefined)
    filter.value = Object.fromEntries(new URLSearchParams(parameters));
  return isPageName(page) ? page : "now";
}

function App() {
  const { hasToken, signedIn } = session.value;
  const needsToken = !mayRead();
  const Page = PAGES[shown.value];
  return (
    <>
      <Shell
        page={shown.value}
        hostname={now.value?.hostname ?? ""}
        connection={connection.value}
        session={session.value}
        onSignOut={() => void signOut().then(focusContent)}
      >
        {needsToken ? <SignIn /> : <Page />}
        {!needsToken && hasToken && !signedIn && (
          <details class="card sign-in">
            <summary>Sign in to act</summary>
            <SignIn />
          </details>
        )}
      </Shell>
      <WhyDialog />
    </>
  );
}

/** The focused element may be gone: keyboard users must not start again at the top. */
function focusContent(): void {
  document.querySelector<HTMLElement>("main")?.focus();
}

function SignIn() {
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const token = fieldText(event.currentTarget, "token");
    signIn(token).then(
      () => {
        signInProblem.value = "";
        focusContent();
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
    focusContent();
    return;
  }
  shown.value = currentPage();
  document.title = `${TITLES[shown.value]} – Portolan`;
  scrollTo(0, 0);
});

const root = document.querySelector("#app");
if (root !== null) {
  // The server has drawn the same content. If another page is shown, it is drawn before the first frame, which waits
  // for this.
  const isDrawn = hasFirstView && shown.value === "now";
  if (!isDrawn) draw(root);
  // Runs after the first frame.
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (isDrawn) draw(root);
      if (hasFirstView) followNow();
      else begin();
    }),
  );
}

function draw(root: Element): void {
  takeFirstView();
  root.removeAttribute("hidden");
  if (hasFirstView && shown.value === "now") hydrate(<App />, root);
  else {
    root.replaceChildren();
    render(<App />, root);
  }
}

/** The server may be unavailable just now. */
function begin(): void {
  loadSession().then(
    () => {
      if (mayRead()) followNow();
      else leave();
    },
    () => {
      connection.value = "lost";
      setTimeout(begin, PAUSE);
    },
  );
}
