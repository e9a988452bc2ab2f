// The API of the cluster benchmark, in a process of its own. It is told by messages what to do: see api-commands.ts.
import type { ApiCommand, ApiReport, ApiStart, ChangeOptions } from "./api-commands.ts";
import { ApiServer } from "./api-server.ts";
import { ApiState } from "./api-state.ts";
import { monotonicMilliseconds } from "./monotonic-time.ts";

const report = (message: ApiReport): void => {
  process.send?.(message);
};

const start: ApiStart = JSON.parse(process.argv[2] ?? "{}");
const state = new ApiState(start.size);
const server = new ApiServer({ ...start, state });
process.on("message", (command: ApiCommand) => void carryOut(command));
// Nobody needs an API without the benchmark.
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
    case "change":
      report({ about: "changed", changes: await change(command) });
      break;
    case "stopChanges":
      changesStopped = true;
      break;
  }
}

/** Sends events at a steady rate; each so many-th moves the watched pod. */
async function churn({
  rate,
  seconds,
  watchedEvery,
}: {
  rate: number;
  seconds: number;
  watchedEvery: number;
}): Promise<{ events: number; moves: [pod: number, sentAt: number][] }> {
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
  }
  return { events, moves };
}

/** Sends changes at a steady rate. @returns how many */
async function change({ rate, changes, together }: ChangeOptions): Promise<number> {
  changesStopped = false;
  const begun = monotonicMilliseconds();
  let sent = 0;
  while (sent < changes && !changesStopped) {
    const rest = begun + (sent * 1000) / rate - monotonicMilliseconds();
    if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
    server.send(...Array.from({ length: together }, () => state.changeSomething()));
    sent += together;
  }
  return sent;
}
