/** The console's API, as the page uses it: answers, the stream of events, the session. */
import { signal } from "@preact/signals";
import type { FirstView, HistoryPoint, NowView, QueryRow, SessionView } from "../api-types.ts";
import type { Connection } from "./shell.tsx";

/** An error response; the message is the server's own. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The data that the server put into the document: empty if it did not know whether this browser may read them. */
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
  // A sign-in or sign-out in the meantime has newer data.
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

/** @throws ApiError with the console's own words: those of browsers differ, and do not help */
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
  // The session has ended: the page offers to sign in again.
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
 * Events of a stream, restarted whenever it ends. A browser by itself restarts a broken connection with the original
 * parameters, and gives up on an error response: a server without a free place, or without this session.
 * @param query evaluated for each attempt
 * @returns a function that ends it
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

/** Waits for the next sign-in. */
export function leave(): void {
  stopFollowing?.();
  connection.value = "out";
}

/** Points of an hour; older ones are dropped. */
const MOST_POINTS = 720;

/** Follows the numbers of each second. */
export function followNow(): void {
  stopFollowing?.();
  // Points that are present already are not requested again.
  const query = (): string => `streams=now&since=${history.value.at(-1)?.time ?? 0}`;
  stopFollowing = follow(query, {
    open: () => {
      // A restarted server knows no session.
      if (connection.value === "lost") loadSession().catch(() => undefined);
      connection.value = "live";
    },
    error: () => {
      connection.value = "lost";
      // It may be back already, and refuse this browser until it signs in.
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

/** Follows single queries. @returns a function that ends it */
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
