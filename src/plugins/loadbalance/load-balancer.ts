import { Rcode, RecordType } from "../../dns/index.ts";
import {
  afterwards,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
  type Site,
} from "../../plugin/index.ts";
import { addressCount, type BalancePolicy } from "./policy.ts";
import { type Network, preferNetworks } from "./preference.ts";
import { RoundRobin } from "./round-robin.ts";
import { WeightFile } from "./weight-file.ts";
import { Weighted } from "./weighted.ts";

export interface LoadBalancerConfig {
  /** The file with weights; without it all addresses are equally likely. */
  readonly weightFile: string | undefined;
  /** Milliseconds between two checks of the weight file, 0 for never. */
  readonly reload: number;
  /** Most preferred first. */
  readonly preferred: readonly Network[];
}

export class LoadBalancer implements PluginInstance {
  readonly #policy: BalancePolicy;
  readonly #preferred: readonly Network[];
  readonly #weights: WeightFile | undefined;
  readonly handle: Handler;

  constructor(config: LoadBalancerConfig, site: Site) {
    this.#preferred = config.preferred;
    if (config.weightFile === undefined) {
      this.#policy = new RoundRobin(site.random);
    } else {
      this.#weights = new WeightFile(site.resolvePath(config.weightFile), config.reload, site);
      this.#policy = new Weighted(this.#weights, site.random);
    }
    // A round-robin answer is shuffled each time it is written. Weights need each answer to pass through the plugin.
    const repeatable = config.weightFile === undefined;
    this.handle = afterwards(this.#balance, this.#balance, { repeatable });
  }

  async examine(): Promise<void> {
    await this.start();
    this.stop();
  }

  async start(): Promise<void> {
    await this.#weights?.start();
  }

  stop(): void {
    this.#weights?.stop();
  }

  readonly #balance = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "reply" || outcome.rcode !== Rcode.NOERROR) return outcome;
    if (query.type === RecordType.AXFR || query.type === RecordType.IXFR) return outcome;
    query.trace?.note("shuffled the addresses");
    if (this.#preferred.length > 0 && addressCount(outcome.sections) > 1)
      this.#balanceWithPreference(outcome);
    else this.#policy.balance(outcome);
    return outcome;
  };

  #balanceWithPreference(reply: Reply): void {
    this.#policy.balanceRecords(reply);
    reply.replaceRecords({
      answer: preferNetworks(reply.answer, this.#preferred),
      additional: preferNetworks(reply.additional, this.#preferred),
    });
  }
}
