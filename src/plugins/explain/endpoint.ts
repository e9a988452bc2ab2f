import type { IncomingMessage, ServerResponse } from "node:http";
import { readBody } from "../../console/http/answer.ts";
import { readQuestion } from "../../console/http/question.ts";
import { RequestError } from "../../console/http/request-error.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { ExplainError } from "../../plugin/contract/explanation.ts";
import {
  type CounterSlot,
  type HttpHandler,
  type PluginInstance,
  SetupError,
  type Site,
} from "../../plugin/index.ts";
import { checkRequest } from "./guard.ts";
import { findPod } from "./pod.ts";
import { readPodRequest } from "./request.ts";

/** State that the blocks of one configuration share. */
interface SharedState {
  /** The address of the endpoint, once a block has configured it. */
  address: string | undefined;
  isServed: boolean;
  underWay: number;
}

/** Time-out of a request in milliseconds. Longer than the time-out of `forward`. */
const TIMEOUT = 8_000;
const MAX_UNDER_WAY = 4;

/** There is one for the whole server: all blocks with the directive share it. */
export class ExplainEndpoint implements PluginInstance {
  readonly #address: string;
  readonly #site: Site;
  readonly #shared: SharedState;

  constructor(address: string, site: Site) {
    this.#address = address;
    this.#site = site;
    this.#shared = site.shared("state", () => ({ address: undefined, isServed: false, underWay: 0 }));
    this.#shared.address ??= address;
    if (this.#shared.address !== address) {
      throw new SetupError(
        `there is one 'explain' for the whole server, which is already at ${this.#shared.address}: ` +
          `write the same address, not ${address}`,
      );
    }
  }

  async start(): Promise<void> {
    if (this.#shared.isServed) return;
    this.#shared.isServed = true;
    const { http, control } = this.#site;
    const { port } = await http.serve(
      this.#address,
      "/explain",
      this.#answering((body) => control.explain(readQuestion(body), TIMEOUT)),
    );
    await http.serve(
      this.#address,
      "/explain/pod",
      this.#answering(async (body) => findPod(control.clusters(), readPodRequest(body))),
    );
    const shown = this.#address.replace(/:\d+$/, `:${port}`);
    this.#site.log.info(`every user of this machine can ask http://${shown}/explain about any query`);
  }

  #answering(answer: (body: string) => Promise<object>): HttpHandler {
    const requests = this.#site.metrics.counter({
      name: "portolan_explain_requests_total",
      help: "Requests to the endpoint of explain, by HTTP status.",
      labels: ["status"],
    });
    const statuses = new Map<number, CounterSlot>();
    const count = (status: number): void => {
      const slot = statuses.get(status) ?? requests.slot(String(status));
      statuses.set(status, slot);
      slot.increment();
    };
    return (request, response) => {
      void this.#respond(request, response, answer).then(count);
    };
  }

  /** @returns the status; never rejects */
  async #respond(
    request: IncomingMessage,
    response: ServerResponse,
    answer: (body: string) => Promise<object>,
  ): Promise<number> {
    const shared = this.#shared;
    let status = 200;
    let body: object;
    shared.underWay++;
    try {
      checkRequest(request);
      if (shared.underWay > MAX_UNDER_WAY)
        throw new RequestError(
          429,
          `${MAX_UNDER_WAY} requests are already in progress: try again in a moment`,
        );
      body = await answer(await readBody(request));
    } catch (error) {
      status = statusOf(error);
      body = { error: messageOf(error) };
      if (status === 500) this.#site.log.error(messageOf(error));
    } finally {
      shared.underWay--;
    }
    response.writeHead(status, {
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "portolan-explain": "1",
      ...(status === 405 && { allow: "POST" }),
      // The unread rest of a body would be parsed as the next request.
      ...(status !== 200 && { connection: "close" }),
    });
    response.end(`${JSON.stringify(body)}\n`);
    return status;
  }
}

function statusOf(error: unknown): number {
  if (error instanceof RequestError) return error.status;
  return error instanceof ExplainError ? 400 : 500;
}
