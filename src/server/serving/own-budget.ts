/** A bound on the connections of one listener (`https`, `grpc_server`). */
import { ConnectionBudget } from "../../transports/connection-budget.ts";
import type { ListenerPlace } from "./scheme-server.ts";

/** Bounds the connections of one listener, within the bound of the process. */
export class OwnBudget {
  readonly #place: ListenerPlace;
  readonly #most: () => number;
  readonly #budget: ConnectionBudget;

  /** @param most connections; 0 for no own bound */
  constructor(place: ListenerPlace, most: () => number) {
    this.#place = place;
    this.#most = most;
    this.#budget = new ConnectionBudget({}, place.budget);
  }

  /** The listener's own bound if that was reached; `undefined` if the process has no room. */
  get reached(): number | undefined {
    const { connections, limits } = this.#budget;
    const isOwn = limits.maxConnections < this.#place.budget.limits.maxConnections;
    return isOwn && connections >= limits.maxConnections ? limits.maxConnections : undefined;
  }

  /** Applies the settings in force. Call it regularly, as a reload may change them. */
  refreshed(): ConnectionBudget {
    const ofProcess = this.#place.budget.limits;
    const most = this.#most();
    const maxConnections = most === 0 ? ofProcess.maxConnections : Math.min(most, ofProcess.maxConnections);
    if (maxConnections !== this.#budget.limits.maxConnections)
      this.#budget.limits = { ...ofProcess, maxConnections };
    return this.#budget;
  }
}
