import { subscribe } from "node:diagnostics_channel";
import { errorMonitor } from "node:events";

/**
 * A connection, datagram socket or child process that the tests of this process opened.
 * @typedef {{ on: import("node:events").EventEmitter["on"], once: import("node:events").EventEmitter["once"], listenerCount: (name: string) => number }} Opened
 */

/** @type {Map<Opened, string>} what is still open, each with its kind and the place that opened it */
const open = new Map();

/** @type {Set<string>} places that opened a connection and listen to no error of it */
const unheard = new Set();

/**
 * From now on, remembers who opens connections, datagram sockets and child processes. An error of one that has no error listener ends the
 * process, often long after its test: the message then names the opener.
 */
export function watchOpened() {
  subscribe("net.client.socket", (message) =>
    watchConnection(/** @type {{ socket: Opened }} */ (message).socket),
  );
  subscribe("udp.socket", (message) =>
    watch(/** @type {{ socket: Opened }} */ (message).socket, "datagram socket"),
  );
  subscribe("child_process", (message) =>
    watch(/** @type {{ process: Opened }} */ (message).process, "child process"),
  );
}

/** Each thing that is still open, as "connection opened at src/transports/tcp-socket.test.ts:12". */
export function stillOpen() {
  return [...open.values()];
}

/** Each connection that was opened without an error listener. */
export function unheardConnections() {
  return [...unheard];
}

/** @param {Opened} socket */
function watchConnection(socket) {
  const text = watch(socket, "connection");
  // Its opener has until the connection is there to add the listener.
  socket.once("connect", () =>
    setImmediate(() => {
      if (socket.listenerCount("error") === 0) unheard.add(text);
    }),
  );
}

/**
 * @param {Opened} opened
 * @param {string} kind
 */
function watch(opened, kind) {
  const text = `${kind} opened at ${openerPlace()}`;
  open.set(opened, text);
  opened.once("close", () => open.delete(opened));
  opened.on(errorMonitor, (/** @type {unknown} */ error) => {
    if (opened.listenerCount("error") === 0 && error instanceof Error)
      error.message += ` (${text}, without an error listener)`;
  });
  return text;
}

/** The call closest to the opening that stands in a test or in what tests share; else the closest outside of Node. */
function openerPlace() {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 50;
  const lines = (new Error("opened").stack ?? "").split("\n").slice(1);
  Error.stackTraceLimit = stackTraceLimit;
  const outside = lines.filter((line) => !/node:|[/\\]scripts[/\\]lib[/\\]opened\.mjs/.test(line));
  const found =
    outside.find((line) => /\.test\.ts|[/\\]test[/\\]/.test(line)) ?? outside[0] ?? lines.at(-1) ?? "";
  const [, place = found.trim()] = /(?:file:\/\/)?(\/[^)]*:\d+):\d+\)?$/.exec(found) ?? [];
  return place.replace(`${process.cwd()}/`, "");
}
