/** The console's API, as the page uses it: answers, the stream of events, the session. */
import { signal } from "@preact/signals";
import type { FirstView, HistoryPoint, NowView, QueryRow, SessionView } from "../api-types.ts";
import type { Connection } from "./shell.tsx";

/** An answer that is no good; the message is the server's own. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What the server has put into the document: empty where it did not know whether this browser may read it. */
const written = document.querySelector<HTMLElement>("#first-view")?.dataset.view ?? "";
export const hasFirstView = written !== "";

export const session = signal<SessionView>({
  readNeedsToken: false,
  hasToken: false,
  signedIn: false,
  csrf: "",
});
export const now = signal<NowView | undefined>(undefined);
export const history = signal<readonly HistoryPoint[]>([]);
export const connection = signal<Connection>("connecting");

export function takeFirstView(): void {
  if (!hasFirstView) return;
  const view: FirstView = JSON.parse(written);
  session.value = view.session;
  now.value = view.now;
  history.value = view.now.history.points;
}

export async function get<T>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<T> {
  const wanted = Object.entries(parameters).filter(([, value]) => value !== "");
  const search = new URLSearchParams(wanted).toString();
  return read(await send(`${path}${search === "" ? "" : `?${search}`}`));
}

export async function post<T>(path: string, body: object): Promise<T> {
  const headers = { "content-type": "application/json", "portolan-csrf": session.value.csrf };
  return read(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function loadSession(): Promise<void> {
  const before = session.value;
  const view = await get<SessionView>("session");
  // Who has signed in or out meanwhile knows better.
  if (session.value === before) session.value = view;
}

export async function signIn(token: string): Promise<void> {
  session.value = await post<SessionView>("session", { token });
  followNow();
}

export async function signOut(): Promise<void> {
  session.value = await read<SessionView>(await send("session", { method: "DELETE" }));
  if (!mayRead()) leave();
}

export function mayRead(): boolean {
  return !session.value.readNeedsToken || session.value.signedIn;
}

/** @throws ApiError in words of the console: those of browsers differ, and help nobody */
async function send(path: string, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(`api/v1/${path}`, init);
  } catch {
    throw new ApiError(0, "the server does not answer: it may be stopped, or starting");
  }
}

async function read<T>(response: Response): Promise<T> {
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok) return body as T;
  // A session that has ended: the page offers to sign in again.
  if (response.status === 401) loadSession().catch(() => undefined);
  const told = typeof body === "object" && body !== null && "error" in body ? String(body.error) : "";
  throw new ApiError(
    response.status,
    told === "" ? `the server answers with status ${response.status}` : told,
  );
}

/** Milliseconds between two attempts to reach the server. */
export const PAUSE = 2_000;

/**
 * Events of a stream, begun anew whenever it ends. A browser would do so by itself where a connection breaks, with the question of the first
 * time, and would give up where something answers that is no stream: a server without a free place, or without this session.
 * @param query asked for each time
 * @returns ends it
 */
function follow(
  query: () => string,
  listeners: Readonly<Record<string, (event: MessageEvent) => void>>,
): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const open = (): void => {
    source = new EventSource(`api/v1/events?${query()}`);
    for (const [name, listener] of Object.entries(listeners)) source.addEventListener(name, listener);
    source.addEventListener("error", () => {
      source.close();
      timer = setTimeout(open, PAUSE);
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

let stopFollowing: (() => void) | undefined;

/** Waits for somebody to sign in. */
export function leave(): void {
  stopFollowing?.();
  connection.value = "out";
}

/** Points of an hour; older ones go. */
const MOST_POINTS = 720;

/** Takes the numbers of each second. */
export function followNow(): void {
  stopFollowing?.();
  // What is here need not come again.
  const query = (): string => `streams=now&since=${history.value.at(-1)?.time ?? 0}`;
  stopFollowing = follow(query, {
    open: () => {
      // A server that has started anew knows no session.
      if (connection.value === "lost") loadSession().catch(() => undefined);
      connection.value = "live";
    },
    error: () => {
      connection.value = "lost";
      // It may be there again by now, and not let this browser in before it signs in.
      loadSession().then(
        () => {
          if (!mayRead()) leave();
        },
        () => undefined,
      );
    },
    now: (event) => {
      const view: NowView = JSON.parse(event.data);
      const { points } = view.history;
      const [first] = points;
      const kept = first === undefined ? [] : history.value.filter(({ time }) => time < first.time);
      history.value = [...kept, ...points].slice(-MOST_POINTS);
      now.value = view;
      connection.value = "live";
    },
  });
}

/** Takes single queries. @returns ends it */
export function followQueries(
  filter: Readonly<Record<string, string>>,
  take: (rows: readonly QueryRow[], leftOut: number) => void,
): () => void {
  const wanted = Object.entries(filter).filter(([, value]) => value !== "");
  const query = new URLSearchParams([["streams", "queries"], ...wanted]).toString();
  return follow(() => query, {
    queries: (event) => {
      const { rows, leftOut }: { rows: QueryRow[]; leftOut: number } = JSON.parse(event.data);
      take(rows, leftOut);
    },
  });
}
