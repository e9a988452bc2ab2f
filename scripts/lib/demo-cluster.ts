/** A server of the quickstart's cluster with pods that ask it, so that there is something to show. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { queryOctets } from "../../test/support/dns-client.ts";
import { Portolan, projectRoot } from "../../test/support/portolan.ts";
import { SeededRandom } from "../../test/support/seeded-random.ts";

export const DEMO_TOKEN = "a token for pictures";

/** Pods by name; their addresses are this machine's own. */
const PODS = [
  "shop/storefront-7d9c6b5f4d-x2k8p",
  "shop/storefront-7d9c6b5f4d-q7w4m",
  "shop/checkout-5b8f9c7d6f-zr5tn",
  "media/player-6f7d8c9b5d-h4kxz",
  "batch/nightly-report-0",
  "monitoring/prometheus-0",
] as const;

interface Kind {
  readonly pod: number;
  readonly share: number;
  readonly names: readonly string[];
  readonly types: readonly string[];
}

/** As the C library of a pod with `ndots:5` asks. */
function searched(namespace: string, name: string): string[] {
  const domains = [`${namespace}.svc.cluster.local.`, "svc.cluster.local.", "cluster.local.", ""];
  return domains.map((domain) => `${name}.${domain}`);
}

const KINDS: readonly Kind[] = [
  {
    pod: 0,
    share: 30,
    names: ["storefront.shop.svc.cluster.local.", "orders-db.shop.svc.cluster.local."],
    types: ["A"],
  },
  {
    pod: 1,
    share: 20,
    names: ["orders-db-0.orders-db.shop.svc.cluster.local.", "sessions.shop.svc.cluster.local."],
    types: ["A", "AAAA"],
  },
  { pod: 2, share: 14, names: searched("shop", "api.payments.example"), types: ["A", "AAAA"] },
  { pod: 2, share: 6, names: ["payments.shop.svc.cluster.local."], types: ["A"] },
  {
    pod: 3,
    share: 16,
    names: ["cdn.media.example.", "img.media.example.", "slow.media.example."],
    types: ["A", "AAAA"],
  },
  { pod: 4, share: 4, names: ["orders-bd.shop.svc.cluster.local.", "broken.example."], types: ["A"] },
  {
    pod: 5,
    share: 10,
    names: ["storefront.shop.svc.cluster.local.", "warehouse.shop.svc.cluster.local."],
    types: ["A", "SRV"],
  },
];

/** Milliseconds between two bursts. */
const BEAT = 50;

export class DemoCluster implements AsyncDisposable {
  readonly server: Portolan;
  readonly #upstream: ScriptedServer;
  readonly #sockets: Socket[];
  readonly #random = new SeededRandom(7);
  readonly #begin = Date.now();
  readonly #timer: NodeJS.Timeout;
  readonly #perSecond: number;

  private constructor(server: Portolan, upstream: ScriptedServer, sockets: Socket[], perSecond: number) {
    this.server = server;
    this.#upstream = upstream;
    this.#sockets = sockets;
    this.#perSecond = perSecond;
    this.#timer = setInterval(() => this.#burst(), BEAT);
  }

  /** @param perSecond queries a second on average */
  static async start(perSecond: number): Promise<DemoCluster> {
    const upstream = await ScriptedServer.start((asked) => {
      const { name } = asked;
      if (name.startsWith("broken.")) asked.answer({ rcode: 2 });
      else if (name.endsWith(".local.")) asked.answer({ rcode: 3 });
      else {
        const isIpv4 = asked.message.questions[0]?.type === 1;
        const answer = isIpv4 ? [`${name} 5 IN A 192.0.2.80`] : [];
        setTimeout(() => asked.answer({ answer }), name.startsWith("slow.") ? 80 : 4);
      }
    });
    const server = await Portolan.start((port) => corefile(upstream.text, port), {
      files: { token: DEMO_TOKEN, "pods.json": podManifests() },
    });
    const sockets = await Promise.all(PODS.map((_, index) => openSocket(addressOf(index))));
    return new DemoCluster(server, upstream, sockets, perSecond);
  }

  get consoleUrl(): string {
    return `http://127.0.0.1:${this.server.portOf("console")}/`;
  }

  #burst(): void {
    const seconds = (Date.now() - this.#begin) / 1_000;
    // Traffic that swells and falls, as in life.
    const swell = 1 + 0.4 * Math.sin(seconds / 7) + 0.2 * Math.sin(seconds / 2.3);
    const count = Math.round((this.#perSecond * swell * BEAT) / 1_000);
    for (let sent = 0; sent < count; sent++) this.#ask(this.#kind());
  }

  #kind(): Kind | undefined {
    const total = KINDS.reduce((sum, { share }) => sum + share, 0);
    let rest = this.#random.below(total);
    for (const kind of KINDS) {
      rest -= kind.share;
      if (rest < 0) return kind;
    }
    return undefined;
  }

  #ask(kind: Kind | undefined): void {
    if (kind === undefined) return;
    const octets = queryOctets(
      this.#random.pick(kind.names),
      this.#random.pick(kind.types),
      this.#random.below(0xffff),
    );
    this.#sockets[kind.pod]?.send(octets, this.server.port, this.server.address);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.close();
    await this.server[Symbol.asyncDispose]();
    await this.#upstream.stop();
  }
}

function corefile(upstream: string, port: (name: string) => number): string {
  const manifests = join(projectRoot, "examples", "quickstart", "manifests");
  return `.:${port("dns")} {
    bind 127.0.0.1
    errors
    console 127.0.0.1:${port("console")} {
        token_file token
        fleet 127.0.0.1:${port("console")} 127.0.0.1:${port("nobody")}
    }
    explain 127.0.0.1:${port("explain")}
    kubernetes cluster.local {
        manifests ${manifests} pods.json
        pods verified
    }
    cache 30
    forward . ${upstream}
    loadbalance
}
`;
}

function podManifests(): string {
  const items = PODS.flatMap((pod, index) => {
    const [namespace = "", name = ""] = pod.split("/");
    const status = { phase: "Running", podIP: addressOf(index), podIPs: [{ ip: addressOf(index) }] };
    return [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
      { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: { containers: [] }, status },
    ];
  });
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

function addressOf(index: number): string {
  return `127.10.1.${index + 1}`;
}

async function openSocket(address: string): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("message", () => undefined);
  socket.bind(0, address);
  await once(socket, "listening");
  return socket;
}
