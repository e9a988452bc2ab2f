/**
 * The addresses and netfilter rules that redirect a node's queries to its cache (docs/spec/kube-dns.md#node-cache). Everything that
 * would catch queries without a server (addresses, and the sets that rules refer to) has a lifetime in the kernel and is renewed.
 * After a kill, the node's queries go to the cluster again within that lifetime.
 */
import type { CommandRunner } from "./run-command.ts";
import { CommandError } from "./run-command.ts";

export interface NodeNetworkOptions {
  readonly localAddresses: readonly string[];
  readonly interfaceName: string;
  readonly healthPort: number;
  /** Whole seconds for which addresses and rules last without being renewed. */
  readonly lease: number;
  /** Port of DNS. */
  readonly port: number;
  readonly run: CommandRunner;
  /** Distinguishes this process from another one that takes over. */
  readonly owner: string;
}

const TABLE = "portolan_node_cache";
const SKIP = "NodeLocal DNS Cache: skip conntrack";
const ALLOW = "NodeLocal DNS Cache: allow DNS traffic";

/** Exit code of iptables; a lock held by another process for too long has another code. */
const NO_SUCH_RULE = 1;

/** More copies of one rule are not ours. */
const MAX_COPIES = 16;

export class NodeNetwork {
  readonly #options: NodeNetworkOptions;
  readonly #family: "ip" | "ip6";

  constructor(options: NodeNetworkOptions) {
    this.#options = options;
    this.#family = options.localAddresses.some((address) => address.includes(":")) ? "ip6" : "ip";
  }

  /** Whether the interface existed. @throws CommandError */
  async addInterface(): Promise<void> {
    const { run, interfaceName, owner } = this.#options;
    if (!(await this.#hasInterface())) {
      try {
        await run("ip", ["link", "add", "dev", interfaceName, "type", "dummy"]);
      } catch (error) {
        // The kernel lacks this interface type. A bridge without ports can hold addresses, too.
        if (!(error instanceof CommandError && /Unknown device type/.test(error.message))) throw error;
        await run("ip", ["link", "add", "dev", interfaceName, "type", "bridge"]);
      }
    }
    await run("ip", ["link", "set", "dev", interfaceName, "up", "alias", owner]);
    await this.renewAddresses();
  }

  /** Adds all addresses to the interface, or renews the lifetime of those that exist. @throws CommandError */
  async renewAddresses(): Promise<void> {
    const { run, interfaceName, localAddresses, lease } = this.#options;
    if (!(await this.#hasInterface())) return this.addInterface();
    for (const address of localAddresses) {
      const prefix = `${address}/${address.includes(":") ? 128 : 32}`;
      const lifetime = ["valid_lft", String(lease), "preferred_lft", String(lease)];
      // A program cannot listen on an IPv6 address during duplicate address detection.
      const flags = address.includes(":") ? ["nodad"] : [];
      await run("ip", ["address", "replace", prefix, "dev", interfaceName, ...lifetime, ...flags]);
    }
  }

  /** Deletes the interface, unless another process has taken it over. @throws CommandError */
  async removeInterface(): Promise<void> {
    const { run, interfaceName, owner } = this.#options;
    if (!(await this.#hasInterface())) return;
    const shown = await run("ip", ["link", "show", "dev", interfaceName]);
    if (/^\s*alias /m.test(shown) && !shown.includes(`alias ${owner}`)) return;
    await run("ip", ["link", "delete", "dev", interfaceName]);
  }

  /** Creates missing rules, and renews the lifetime of the others. @throws CommandError */
  async renewRules(): Promise<void> {
    const { run, localAddresses } = this.#options;
    await run("nft", ["-f", "-"], this.#ruleset());
    for (const address of localAddresses)
      for (const rule of this.#filterRules(address)) await this.#insert(rule);
  }

  /** Stops redirecting queries: they go to the cluster. @throws CommandError for the last rule that could not be removed */
  async removeRules(): Promise<void> {
    const { run, localAddresses } = this.#options;
    await run("nft", ["-f", "-"], `table inet ${TABLE}\ndelete table inet ${TABLE}\n`);
    let failure: CommandError | undefined;
    for (const address of localAddresses)
      for (const rule of this.#filterRules(address)) failure = (await this.#delete(rule)) ?? failure;
    if (failure !== undefined) throw failure;
  }

  /** Two instances that start at the same time may both have added the rule. @returns why one of the copies may still exist */
  async #delete(rule: readonly string[]): Promise<CommandError | undefined> {
    for (let copy = 0; copy < MAX_COPIES; copy++) {
      try {
        await this.#iptables(["-D", ...rule]);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        return error.code === NO_SUCH_RULE ? undefined : error;
      }
    }
    return undefined;
  }

  /** One transaction: packets see the old rules or the new ones. Existing elements get a new lifetime. */
  #ruleset(): string {
    const { localAddresses, healthPort, port, lease } = this.#options;
    const family = this.#family;
    const type = family === "ip" ? "ipv4_addr" : "ipv6_addr";
    const elements = localAddresses.map((address) => `${address} timeout ${lease}s`).join(", ");
    const skip = (match: string) => `  ${match} counter notrack comment "${SKIP}"`;
    return [
      `table inet ${TABLE}`,
      `delete table inet ${TABLE}`,
      `table inet ${TABLE} {`,
      ` set local { type ${type}; flags timeout; elements = { ${elements} } }`,
      " chain prerouting {",
      "  type filter hook prerouting priority raw; policy accept;",
      ...["udp", "tcp"].map((protocol) => skip(`${family} daddr @local ${protocol} dport ${port}`)),
      " }",
      " chain output {",
      "  type filter hook output priority raw; policy accept;",
      ...["udp", "tcp"].flatMap((protocol) => [
        skip(`${family} saddr @local ${protocol} sport ${port}`),
        skip(`${family} daddr @local ${protocol} dport ${port}`),
      ]),
      skip(`${family} daddr @local tcp dport ${healthPort}`),
      skip(`${family} saddr @local tcp sport ${healthPort}`),
      " }",
      "}",
      "",
    ].join("\n");
  }

  /** These catch no queries, so they may outlive the process: they accept packets that a stricter rule might drop. */
  #filterRules(address: string): string[][] {
    const port = String(this.#options.port);
    const comment = ["-j", "ACCEPT", "-m", "comment", "--comment", ALLOW];
    return ["tcp", "udp"].flatMap((protocol) => [
      ["INPUT", "-p", protocol, "-d", address, "--dport", port, ...comment],
      ["OUTPUT", "-p", protocol, "-s", address, "--sport", port, ...comment],
    ]);
  }

  async #insert(rule: readonly string[]): Promise<void> {
    try {
      await this.#iptables(["-C", ...rule]);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      await this.#iptables(["-I", ...rule]);
    }
  }

  #iptables(words: readonly string[]): Promise<string> {
    return this.#options.run(this.#family === "ip" ? "iptables" : "ip6tables", ["-w", "5", ...words]);
  }

  async #hasInterface(): Promise<boolean> {
    const { run, interfaceName } = this.#options;
    try {
      await run("ip", ["link", "show", "dev", interfaceName]);
      return true;
    } catch (error) {
      if (error instanceof CommandError && error.code === 1) return false;
      throw error;
    }
  }
}
