/** The paths of the console: its page, and the API that the page and the command line read. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger, SettableLevel } from "../lib/logging/log.ts";
import { countOf } from "../lib/text/count-of.ts";
import { messageOf } from "../lib/text/message-of.ts";
import type { Clock } from "../lib/time/clock.ts";
import { ExplainError } from "../plugin/contract/explanation.ts";
import type { HttpHandler, ServerControl } from "../plugin/contract/site.ts";
import { API_SCHEMA } from "./api-schema.ts";
import type { FirstView } from "./api-types.ts";
import { cacheAnswer, forgetIn, readForget } from "./cache-facts.ts";
import { namesView } from "./cluster-facts.ts";
import { configurationAnswer } from "./configuration-facts.ts";
import type { Console } from "./console.ts";
import type { FleetWatch } from "./fleet-watch.ts";
import type { Access } from "./http/access.ts";
import { answerCsv, answerError, answerJson, readBody } from "./http/answer.ts";
import { textMember } from "./http/body.ts";
import { EventStream } from "./http/event-stream.ts";
import { queriesAsCsv } from "./http/query-csv.ts";
import { readQuestion } from "./http/question.ts";
import { RequestError } from "./http/request-error.ts";
import { Turns } from "./http/turns.ts";
import type { PageFiles } from "./page-files.ts";
import { readLevel, readRule, setRule, settingsView } from "./settings.ts";

export interface ConsoleApiOptions {
  readonly console: Console;
  readonly access: Access;
  readonly control: ServerControl;
  readonly fleet: FleetWatch;
  readonly page: PageFiles;
  readonly log: Logger;
  readonly clock: Clock;
  /** Sets the level of the process log; resolves once all threads have it. */
  readonly setLevel: (level: SettableLevel) => Promise<void>;
}

type Answer = (
  request: IncomingMessage,
  url: URL,
  response: ServerResponse,
) => object | undefined | Promise<object | undefined>;

/** Milliseconds for an explanation, and how many may run at one time. */
const EXPLAIN_TIMEOUT = 8_000;
const MAX_EXPLAINING = 4;
const MAX_ROWS = 1_000;
/** Waiting requests: as many as connections. */
const MAX_WAITING = 256;
const STREAMS: readonly string[] = ["now", "queries"];

export class ConsoleApi {
  readonly #options: ConsoleApiOptions;
  readonly #turns = new Turns(MAX_WAITING);
  #explaining = 0;

  constructor(options: ConsoleApiOptions) {
    this.#options = options;
  }

  /** Handlers by path. */
  routes(): Map<string, HttpHandler> {
    const { access, console, control, fleet, page } = this.#options;
    const reads = (answer: Answer): HttpHandler =>
      this.#handler(["GET"], (request, url, response) => {
        access.checkRead(request);
        return answer(request, url, response);
      });
    const routes = new Map<string, HttpHandler>([
      ["/api/v1/now", reads(() => console.now())],
      ["/api/v1/machine", reads(() => console.machine())],
      ["/api/v1/who", reads((_request, { searchParams }) => console.who(rowsIn(searchParams, 50)))],
      [
        "/api/v1/queries",
        reads(async (_request, { searchParams }, response) => {
          const format = searchParams.get("format") ?? "json";
          if (format !== "json" && format !== "csv") throw new RequestError(400, "format: json or csv");
          const queries = await console.recent(console.filter(searchParams), rowsIn(searchParams, 200));
          if (format === "json") return { queries };
          answerCsv(response, queriesAsCsv(queries));
          return undefined;
        }),
      ],
      [
        "/api/v1/events",
        this.#handler(["GET"], (request, { searchParams }, response) =>
          this.#follow(searchParams, response, access.checkRead(request)),
        ),
      ],
      [
        "/api/v1/names",
        reads((_request, { searchParams }) =>
          namesView(control, {
            namespace: searchParams.get("namespace") ?? "",
            text: searchParams.get("text") ?? "",
          }),
        ),
      ],
      ["/api/v1/configuration", reads(() => configurationAnswer(control))],
      [
        "/api/v1/cache",
        reads((_request, { searchParams }) => cacheAnswer(control, searchParams.get("name") ?? "")),
      ],
      ["/api/v1/fleet", reads(() => fleet.view())],
      ["/api/v1/replica", reads(() => fleet.own())],
      ["/api/v1/schema", reads(() => API_SCHEMA)],
      ["/api/v1/explain", this.#handler(["POST"], (request) => this.#explain(request))],
      ["/api/v1/settings", reads(() => settingsView(control))],
      ["/api/v1/settings/level", this.#handler(["POST"], (request) => this.#setLevel(request))],
      ["/api/v1/settings/trace", this.#handler(["POST"], (request) => this.#setRule(request))],
      ["/api/v1/cache/forget", this.#handler(["POST"], (request) => this.#forget(request))],
      [
        "/api/v1/session",
        this.#handler(["GET", "POST", "DELETE"], (request, _url, response) =>
          this.#session(request, response),
        ),
      ],
    ]);
    routes.set(
      "/",
      this.#handler(["GET", "HEAD"], async (request, _url, response) => {
        await page.answerDocument(this.#firstView(request), request, response);
        return undefined;
      }),
    );
    for (const path of page.paths)
      routes.set(
        path,
        this.#handler(["GET", "HEAD"], async (request, _url, response) => {
          await page.answer(path, request, response);
          return undefined;
        }),
      );
    return routes;
  }

  #handler(methods: readonly string[], answer: Answer): HttpHandler {
    return (request, response) => void this.#respond(methods, answer, request, response);
  }

  async #respond(
    methods: readonly string[],
    answer: Answer,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      if (!methods.includes(request.method ?? ""))
        throw new RequestError(405, `${request.method} is not possible here: use ${methods.join(" or ")}`, {
          allow: methods.join(", "),
        });
      const turn = this.#turns.take();
      if (turn === undefined)
        throw new RequestError(503, `${MAX_WAITING} requests are waiting: try again in a moment`);
      await turn;
      // The client is gone: its body would never arrive.
      if (response.destroyed || request.destroyed) return;
      const url = new URL(request.url ?? "/", "http://console.invalid");
      const body = await answer(request, url, response);
      if (body !== undefined) answerJson(response, 200, body);
    } catch (error) {
      const known = error instanceof ExplainError ? new RequestError(400, error.message) : error;
      answerError(response, known, (fault) => this.#options.log.error(messageOf(fault)));
    }
  }

  /** The data of the first page, for clients that may read it. */
  #firstView(request: IncomingMessage): FirstView | undefined {
    const { access, console } = this.#options;
    try {
      access.checkRead(request);
    } catch (error) {
      // The page finds the reason itself: a browser that follows a link of another site does not send its cookie.
      if (error instanceof RequestError) return undefined;
      throw error;
    }
    return { session: access.view(request), now: console.now() };
  }

  /** @param mayRead whether the client still has read access */
  #follow(parameters: URLSearchParams, response: ServerResponse, mayRead: () => boolean): undefined {
    const { console } = this.#options;
    const wants = (parameters.get("streams") ?? STREAMS.join(",")).split(",");
    const unknown = wants.find((word) => !STREAMS.includes(word));
    if (unknown !== undefined)
      throw new RequestError(400, `streams: ${unknown.slice(0, 40)} is not one of ${STREAMS.join(", ")}`);
    const filter = wants.includes("queries") ? console.filter(parameters) : undefined;
    const since = timeIn(parameters, "since");
    console.follow(() => new EventStream(response), {
      filter,
      wantsNow: wants.includes("now"),
      since,
      mayRead,
    });
    return undefined;
  }

  async #explain(request: IncomingMessage): Promise<object> {
    const { access, control } = this.#options;
    access.checkQuestion(request);
    if (this.#explaining >= MAX_EXPLAINING)
      throw new RequestError(429, `${MAX_EXPLAINING} explanations are in progress: try again in a moment`);
    this.#explaining++;
    try {
      return await control.explain(readQuestion(await readBody(request)), EXPLAIN_TIMEOUT);
    } finally {
      this.#explaining--;
    }
  }

  async #forget(request: IncomingMessage): Promise<object> {
    const { access, control, log } = this.#options;
    access.checkAction(request);
    const wanted = readForget(await readBody(request));
    const forgotten = await forgetIn(control, wanted);
    const what = `${wanted.name}${wanted.below ? " and below" : ""}${wanted.typeName === "" ? "" : ` ${wanted.typeName}`}`;
    log.info(
      `${countOf(forgotten, "answer")} removed from the cache for ${what}, requested by ${whoAsked(request)}`,
    );
    return { forgotten };
  }

  async #setLevel(request: IncomingMessage): Promise<object> {
    const { access, control, setLevel, log } = this.#options;
    access.checkAction(request);
    const level = readLevel(await readBody(request));
    // Level `error` would suppress this line.
    if (control.log !== undefined) control.log.level = "info";
    log.info(`the log has level ${level} until the next reload, requested by ${whoAsked(request)}`);
    await setLevel(level);
    return settingsView(control);
  }

  async #setRule(request: IncomingMessage): Promise<object> {
    const { access, control, clock, log } = this.#options;
    access.checkAction(request);
    const rule = readRule(await readBody(request));
    await setRule(control, rule, clock.wallTime());
    const what =
      rule.client === ""
        ? "only the Corefile's rules trace queries"
        : `all queries of ${rule.client} are traced for ${countOf(rule.minutes, "minute")}`;
    log.info(`${what}, requested by ${whoAsked(request)}`);
    return settingsView(control);
  }

  async #session(request: IncomingMessage, response: ServerResponse): Promise<object | undefined> {
    const { access } = this.#options;
    if (request.method === "GET") return access.view(request);
    if (request.method === "DELETE") {
      const cookie = access.signOut(request);
      answerJson(response, 200, access.view(request, cookie), { "set-cookie": cookie });
      return undefined;
    }
    const cookie = access.signIn(request, textMember(await readBody(request), "token"));
    answerJson(response, 200, access.view(request, cookie), { "set-cookie": cookie });
    return undefined;
  }
}

function whoAsked({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? "somebody";
}

/** @throws RequestError */
function rowsIn(parameters: URLSearchParams, fallback: number): number {
  const text = parameters.get("rows");
  if (text === null) return fallback;
  const rows = Number(text);
  if (Number.isInteger(rows) && rows > 0 && rows <= MAX_ROWS) return rows;
  throw new RequestError(400, `rows: ${text} is not a whole number from 1 to ${MAX_ROWS}`);
}

/**
 * @returns milliseconds of the Unix epoch, 0 if absent
 * @throws RequestError
 */
function timeIn(parameters: URLSearchParams, name: string): number {
  const text = parameters.get(name) ?? "0";
  const time = Number(text);
  if (Number.isSafeInteger(time) && time >= 0) return time;
  throw new RequestError(
    400,
    `${name}: ${text.slice(0, 40)} is not a time in milliseconds of the Unix epoch`,
  );
}
