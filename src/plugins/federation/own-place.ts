import { CLUSTER } from "../../kubernetes/answers/cluster-service.ts";
import type { NodePlace } from "../../kubernetes/api/client/node-place.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Site } from "../../plugin/index.ts";

/** Milliseconds that a query waits for the API. */
const PATIENCE = 2_000;
/** Milliseconds before the API is asked again after an unusable answer. */
const PAUSE = 10_000;

/** Topology zone and region of this node, from the API that the block's `kubernetes` watches. */
export class OwnPlace {
  readonly #site: Site;
  readonly #stopped = new AbortController();
  #known: NodePlace | undefined;
  #asking: Promise<NodePlace | undefined> | undefined;
  #askAgainAt = Number.NEGATIVE_INFINITY;

  constructor(site: Site) {
    this.#site = site;
  }

  /** Nodes do not move, so the result is stored. */
  find(): NodePlace | undefined | Promise<NodePlace | undefined> {
    if (this.#known !== undefined || this.#site.clock.now() < this.#askAgainAt) return this.#known;
    this.#asking ??= this.#ask();
    return this.#asking;
  }

  stop(): void {
    this.#stopped.abort(new Error("stopped"));
  }

  async #ask(): Promise<NodePlace | undefined> {
    const { block, clock, log, machine } = this.#site;
    const late = new AbortController();
    const timer = clock.after(PATIENCE, () => late.abort(new Error(`no answer within ${PATIENCE} ms`)));
    const signal = AbortSignal.any([late.signal, this.#stopped.signal]);
    try {
      const [cluster] = CLUSTER.among(block.plugins());
      // The Deployment sets it from `spec.nodeName`.
      this.#known = await cluster?.nodePlace?.(machine.environment.NODE_NAME ?? "", signal);
    } catch (error) {
      if (!this.#stopped.signal.aborted) log.warning(`zone and region of this node: ${messageOf(error)}`);
    } finally {
      timer.cancel();
      this.#asking = undefined;
      this.#askAgainAt = clock.now() + PAUSE;
    }
    return this.#known;
  }
}
