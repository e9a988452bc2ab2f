/**
 * The parts of undici for requests to the API. The whole package loads fetch, WebSocket, caches and mocks too, which
 * costs memory and start-up time. The paths are valid for the version that package.json pins.
 */
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import type * as Undici from "undici";
import { isPlain } from "./plain.ts";

export type UndiciParts = Pick<typeof Undici, "Agent" | "buildConnector" | "ProxyAgent" | "Socks5ProxyAgent">;

/** Loads them at the first call. */
export function loadUndiciParts(): UndiciParts {
  const require = createRequire(import.meta.url);
  if (isPlain()) return require("undici");
  const dispatcher: typeof Undici.Dispatcher = require("undici/lib/dispatcher/dispatcher.js");
  // As in the package's main file, with the only method that a proxy needs.
  const connect: Undici.Dispatcher["connect"] = require("undici/lib/api/api-connect.js");
  Object.assign(dispatcher.prototype, { connect });
  return {
    Agent: require("undici/lib/dispatcher/agent.js"),
    buildConnector: require("undici/lib/core/connect.js"),
    ProxyAgent: require("undici/lib/dispatcher/proxy-agent.js"),
    Socks5ProxyAgent: require("undici/lib/dispatcher/socks5-proxy-agent.js"),
  };
}

/** The modules of Node that the parts below need. */
const OF_NODE = ["zlib", "stream/web"];
/** Parts of {@link loadUndiciParts}, dependencies first: each blocks the thread for a while. */
const IN_TURNS = [
  "core/util.js",
  "api/readable.js",
  "api/index.js",
  "core/connect.js",
  "web/webidl/index.js",
  "web/fetch/util.js",
  "web/fetch/body.js",
  "dispatcher/client-h1.js",
  "dispatcher/client-h2.js",
  "dispatcher/agent.js",
  "dispatcher/proxy-agent.js",
];

/** Loads a few parts in each event-loop turn: a reload may need them while queries are answered. */
export async function loadUndiciInTurns(): Promise<void> {
  const require = createRequire(import.meta.url);
  for (const name of OF_NODE) {
    process.getBuiltinModule(name);
    await nextTurn();
  }
  if (isPlain()) {
    require("undici");
    return;
  }
  for (const part of IN_TURNS) {
    require(`undici/lib/${part}`);
    await nextTurn();
  }
}
