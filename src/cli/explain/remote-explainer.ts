/** Asks a running server, through the endpoint of its `explain` directive or through its console. */

import { request } from "node:http";
import { isLoopbackHost } from "../../console/http/loopback.ts";
import { className } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { isObject, listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { ExplainQuestion, Explanation } from "../../plugin/contract/explanation.ts";
import type { ServerAddress } from "../../server/explaining/socket-client.ts";
import { ConsoleClient, ConsoleFault } from "../live/console-client.ts";
import { type Explainer, type FoundPod, fault } from "./explainer.ts";

/** Milliseconds; more than the server allows itself. */
const TIMEOUT = 10_000;
const MAX_ANSWER = 8 * 1024 * 1024;

/**
 * Accepts `127.0.0.1:8183`, `:8183`, `8183`, `http://localhost:8183/`.
 * @param tokenFile of a console, which may also be reached over the network; empty for none
 * @throws FlagError
 */
export function parseServerAddress(text: string, tokenFile = ""): ServerAddress {
  const match = /^(?:http:\/\/)?(?:(\[[0-9a-fA-F:.]+\]|[^:[\]/]*):)?(\d{1,5})\/?$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 0xffff || port === 0)
    throw fault(`-server ${text}: not an address with a port, such as 127.0.0.1:8183`);
  const host = match[1] === undefined || match[1] === "" ? "127.0.0.1" : match[1];
  if (tokenFile === "" && !isLoopbackHost(host)) {
    throw fault(
      `-server ${text}: explain answers on loopback only; open a tunnel to that machine, such as ` +
        `kubectl port-forward pod/NAME ${port} or ssh -L ${port}:127.0.0.1:${port} ${host}, and ask 127.0.0.1:${port}`,
    );
  }
  return { host, port };
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  /** Whether the endpoint identifies itself as a Portolan explain endpoint. */
  readonly isExplain: boolean;
  readonly body: string;
}

export class RemoteExplainer implements Explainer {
  readonly #address: ServerAddress;
  readonly #tokenFile: string;
  readonly #timeout: number;

  constructor(address: ServerAddress, tokenFile = "", timeout: number = TIMEOUT) {
    this.#address = address;
    this.#tokenFile = tokenFile;
    this.#timeout = timeout;
  }

  async explain({ type, class: queryClass, ...question }: ExplainQuestion): Promise<Explanation> {
    const asked = {
      ...question,
      type: recordTypeName(type),
      ...(queryClass !== undefined && { class: className(queryClass) }),
    };
    const answer = await this.#ask("/explain", asked, (fault) =>
      this.#ofConsole(fault, (client) => client.post("/api/v1/explain", asked)),
    );
    if (!isExplanation(answer)) throw this.#fault("answers in the format of another version of Portolan");
    return answer;
  }

  async findPod(namespace: string, name: string): Promise<FoundPod> {
    const facts = await this.#ask("/explain/pod", { namespace, name }, async (fault) => {
      await this.#ofConsole(fault, (client) => client.get("/api/v1/schema"));
      throw this.#fault(NO_PODS);
    });
    return {
      domain: textMember(facts, "domain"),
      pod: {
        namespace,
        name,
        policy: "ClusterFirst",
        hostNetwork: false,
        config: { nameservers: [], searches: [], ndots: undefined },
        addresses: texts(facts, "addresses"),
        assumed: texts(facts, "assumed"),
      },
    };
  }

  async stop(): Promise<void> {
    // Keeps no connection open.
  }

  /** @param otherwise asks an endpoint that is not `explain`, or throws the fault that says so */
  async #ask(path: string, question: object, otherwise: (fault: Error) => unknown): Promise<unknown> {
    const { status, contentType, isExplain, body } = await this.#post(path, JSON.stringify(question));
    if (!isExplain) {
      const what = contentType === "" ? "" : ` with ${contentType.split(";", 1)[0]}`;
      return otherwise(
        this.#fault(
          `answers ${status}${what} and is neither an explain endpoint nor a console: add 'explain' or 'console' to the ` +
            "server's Corefile, and use the address that it logs at startup",
        ),
      );
    }
    let answer: unknown;
    try {
      answer = JSON.parse(body);
    } catch {
      throw this.#fault("answers with invalid JSON");
    }
    if (status !== 200) throw this.#fault(`refuses: ${textMember(answer, "error") || `status ${status}`}`);
    return answer;
  }

  /** @throws `notExplain` if no console answers */
  async #ofConsole(notExplain: Error, ask: (client: ConsoleClient) => Promise<unknown>): Promise<unknown> {
    const { host, port } = this.#address;
    const client = new ConsoleClient({ server: `${host}:${port}`, tokenFile: this.#tokenFile });
    try {
      return await ask(client);
    } catch (error) {
      if (error instanceof ConsoleFault && error.reason.endsWith("is that a console?")) throw notExplain;
      throw error;
    }
  }

  #post(path: string, body: string): Promise<Answer> {
    const { host, port } = this.#address;
    return new Promise((resolve, reject) => {
      const sent = request({
        host: host.replace(/^\[(.*)\]$/, "$1"),
        port,
        path,
        method: "POST",
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
        signal: AbortSignal.timeout(this.#timeout),
      });
      const failed = (error: unknown): void => reject(this.#fault(this.#reasonOf(error)));
      sent.once("error", failed);
      sent.once("response", (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (length > MAX_ANSWER) {
            failed(new Error("answers with more than 8 MiB"));
            response.destroy();
          } else chunks.push(chunk);
        });
        response.once("error", failed);
        response.once("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            contentType: response.headers["content-type"] ?? "",
            isExplain: response.headers["portolan-explain"] !== undefined,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      });
      sent.end(body);
    });
  }

  #reasonOf(error: unknown): string {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "ECONNREFUSED") {
      return (
        "nothing listens there (connection refused): does the server run, with 'explain' or 'console' in its Corefile? " +
        `To reach one in a pod: kubectl port-forward pod/NAME ${this.#address.port}`
      );
    }
    if (error instanceof Error && (error.name === "TimeoutError" || code === "ABORT_ERR"))
      return `no answer within ${this.#timeout / 1_000} s: is that the address of explain, and is the server overloaded?`;
    if (code.startsWith("HPE_") || code === "ECONNRESET")
      return `the service there does not speak HTTP (${code}): give the address of explain, not that of DNS`;
    return messageOf(error);
  }

  #fault(reason: string): Error {
    const { host, port } = this.#address;
    return fault(`-server ${host}:${port}: ${reason}`);
  }
}

const NO_PODS =
  "a console cannot look up pods: give the pod's address with -from IP, or add 'explain' to the server's Corefile";

/** Whether an answer has every member that is printed. */
function isExplanation(value: unknown): value is Explanation {
  const message = member(value, "message");
  return (
    ["name", "type", "client", "transport", "listener"].every((key) => textMember(value, key) !== "") &&
    typeof member(value, "milliseconds") === "number" &&
    Array.isArray(member(value, "steps")) &&
    listMember(value, "steps").every(
      (step) =>
        textMember(step, "plugin") !== "" &&
        textMember(step, "decision") !== "" &&
        typeof member(step, "depth") === "number" &&
        Array.isArray(member(step, "notes")) &&
        listMember(step, "notes").every(isObject),
    ) &&
    (message === undefined ||
      (textMember(message, "rcode") !== "" &&
        ["flags", "answer", "authority", "additional"].every((key) => Array.isArray(member(message, key)))))
  );
}

function texts(value: unknown, key: string): string[] {
  return listMember(value, key).filter((each) => typeof each === "string");
}
