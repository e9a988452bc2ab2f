// The API of the cluster benchmark, in a process of its own, controlled by messages: see api-commands.ts.
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import type { ApiCommand, ApiReport, ApiStart, ChangeOptions } from "./api-commands.ts";
import { EventEncoder } from "./api-messages.ts";
import { ApiServer } from "./api-server.ts";
import { ApiState } from "./api-state.ts";
import { USUAL_SIZE } from "./cluster-shape.ts";
import { CollectionCount } from "./collection-count.ts";
import { monotonicMilliseconds } from "./monotonic-time.ts";

const report = (message: ApiReport): void => {
  process.send?.(message);
};

/**
 * Events after which the API collects its garbage, in 10 to 20 ms. With twice as many V8 would begin by itself: it counts the octets of events, whether or not young
 * objects were collected in between.
 */
const COLLECT_EVERY = 100;
/** Events until V8 has compiled what makes them. */
const REHEARSED = 500;

const start: ApiStart = JSON.parse(process.argv[2] ?? "{}");
const state = new ApiState(start.size);
rehearse();
const server = new ApiServer({ ...start, state });
process.on("message", (command: ApiCommand) => void carryOut(command));
// The API ends with the benchmark.
process.on("disconnect", () => process.exit());
report({ about: "listening", port: await server.listen() });

let changesStopped = false;

async function carryOut(command: ApiCommand): Promise<void> {
  switch (command.to) {
    case "awaitLists":
      report({ about: "listed", ...(await server.listed(command.kinds)) });
      break;
    case "forget":
      server.forget();
      break;
    case "churn":
      report({ about: "churned", ...(await churn(command)) });
      break;
    case "appear":
      report({ about: "appeared", services: await appear(command) });
      break;
    case "change":
      report({ about: "changed", changes: await change(command) });
      break;
    case "stopChanges":
      changesStopped = true;
      break;
  }
}

/** Makes events without a watcher, so that V8 compiles this code before a measurement waits for an event. */
function rehearse(): void {
  const cluster = new ApiState(USUAL_SIZE);
  const encoder = new EventEncoder();
  for (let event = 0; event < REHEARSED; event++) {
    const { event: type, type: objects, object } = cluster.replaceSomePod();
    encoder.encode(type, objects, object);
  }
}

/**
 * Sends events at a steady rate; each so many-th moves the watched pod. What the API leaves behind is collected between two of those: otherwise one or two of a
 * hundred waited for a collection of the API, or for V8's threads in its process, and the time counted as the server's.
 */
async function churn({
  rate,
  seconds,
  watchedEvery,
}: {
  rate: number;
  seconds: number;
  watchedEvery: number;
}): Promise<{ events: number; moves: [pod: number, sentAt: number][]; collections: number }> {
  /** The previous change has been queried by now, and most of the time until the next change is idle. */
  const behind = Math.floor(watchedEvery / 3);
  globalThis.gc?.();
  const collections = new CollectionCount();
  const begun = monotonicMilliseconds();
  const total = rate * seconds;
  const moves: [pod: number, sentAt: number][] = [];
  let events = 0;
  while (events < total) {
    const due = begun + (events * 1000) / rate;
    const rest = due - monotonicMilliseconds();
    if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
    events++;
    if (watchedEvery > 0 && events % watchedEvery === 0) {
      const { event, pod } = state.moveWatched();
      moves.push([pod, monotonicMilliseconds()]);
      server.send(event);
    } else server.send(state.replaceSomePod());
    if (events % COLLECT_EVERY === behind) globalThis.gc?.();
  }
  return { events, moves, collections: await collections.end() };
}

/** Creates a Service, and deletes it half way to the next one. */
async function appear({ times, everyMs }: { times: number; everyMs: number }) {
  const services: [service: number, sentAt: number][] = [];
  for (let time = 0; time < times; time++) {
    const { event, service } = state.appear();
    globalThis.gc?.();
    await delay(everyMs / 2);
    services.push([service, monotonicMilliseconds()]);
    server.send(event);
    await delay(everyMs / 2);
    server.send(state.disappear());
  }
  return services;
}

/** Sends changes at a steady rate. @returns how many */
async function change({ rate, changes, together, mixed = false }: ChangeOptions): Promise<number> {
  changesStopped = false;
  const begun = monotonicMilliseconds();
  let sent = 0;
  while (sent < changes && !changesStopped) {
    const rest = begun + (sent * 1000) / rate - monotonicMilliseconds();
    if (rest > 0) await delay(rest);
    // What is late is not to be sent together either.
    else await nextTurn();
    const next = () => (mixed ? state.changeMixed() : state.changeSomething());
    server.send(...Array.from({ length: together }, next));
    sent += together;
  }
  return sent;
}
