/** Pods of a cluster that ask its DNS from addresses of their own, as the C library in them does. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { planSearch } from "../../src/cli/explain/pod-resolver.ts";
import { decodeMessage, type Message } from "../../src/dns/message.ts";
import { queryOctets, type Server } from "./dns-client.ts";
import type { ApiSimulator } from "./kubernetes-api/api-simulator.ts";

const PATIENCE = 1_000;
const ATTEMPTS = 10;

export class Pod implements AsyncDisposable {
  readonly namespace: string;
  readonly #server: Server;
  readonly #socket: Socket;
  #lastId = 0;

  private constructor(namespace: string, server: Server, socket: Socket) {
    this.namespace = namespace;
    this.#server = server;
    this.#socket = socket;
  }

  /** @param address in 127.0.0.0/8, where every address is this machine's */
  static async start(
    api: ApiSimulator,
    server: Server,
    { namespace, name, address }: { namespace: string; name: string; address: string },
  ): Promise<Pod> {
    putPod(api, { namespace, name, address });
    const socket = createSocket("udp4");
    // Each question that is under way listens.
    socket.setMaxListeners(0);
    socket.bind(0, address);
    await once(socket, "listening");
    return new Pod(namespace, server, socket);
  }

  /** One query with one id, sent this many times, as by a client that retries in vain; the answers. */
  async ask(name: string, type = "A", times = 1): Promise<Message[]> {
    const id = (this.#lastId % 0xffff) + 1;
    this.#lastId = id;
    const octets = queryOctets(name, type, id);
    const answers: Message[] = [];
    for (let time = 0; time < times; time++) answers.push(await this.#exchange(octets, id));
    return answers;
  }

  /** Walks the search path as `ndots:5` has it. @returns the rcodes in turn */
  async resolve(name: string, types: readonly string[] = ["A"]): Promise<number[]> {
    const { namespace } = this;
    const search = [`${namespace}.svc.cluster.local`, "svc.cluster.local", "cluster.local"];
    const rcodes: number[] = [];
    for (const each of planSearch(name, { search, ndots: 5 }, "glibc").names) {
      const answers = await Promise.all(types.map((type) => this.ask(each, type)));
      const rcode = answers[0]?.[0]?.rcode ?? -1;
      rcodes.push(rcode);
      if (rcode === 0) break;
    }
    return rcodes;
  }

  async #exchange(octets: Uint8Array, id: number): Promise<Message> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const signal = AbortSignal.timeout(PATIENCE);
      this.#socket.send(octets, this.#server.port, this.#server.address);
      try {
        for (;;) {
          const [reply]: unknown[] = await once(this.#socket, "message", { signal });
          if (!(reply instanceof Uint8Array)) continue;
          const message = decodeMessage(reply);
          if (message.id === id) return message;
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
    throw new Error("no answer");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }
}

export function putPod(
  api: ApiSimulator,
  { namespace, name, address }: { namespace: string; name: string; address: string },
): void {
  api.put("namespaces", { metadata: { name: namespace } });
  api.put("pods", {
    metadata: { name, namespace },
    spec: { containers: [] },
    status: { phase: "Running", podIP: address, podIPs: [{ ip: address }] },
  });
}
