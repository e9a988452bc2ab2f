/**
 * Answers the CA's challenge queries. It is part of every server block of a configuration that obtains certificates,
 * so that it answers in whichever block the name belongs to.
 */
import { RecordClass, RecordType, TXT } from "../../../dns/index.ts";
import type { Handler, PluginInstance, Site } from "../../../plugin/index.ts";
import type { AcmeState } from "./acme-state.ts";
import type { Challenge } from "./challenge-table.ts";

export class ChallengeResponder implements PluginInstance {
  readonly #site: Site;
  readonly #state: AcmeState;
  #endWatch: (() => void) | undefined;

  constructor(site: Site, state: AcmeState) {
    this.#site = site;
    this.#state = state;
    site.feed.provide(() => [state.challenges.challenges]);
    site.feed.receive((message) => state.challenges.replace(message as readonly Challenge[]));
  }

  readonly handle: Handler = (query, next) => {
    const { challenges } = this.#state;
    if (challenges.isEmpty || query.type !== RecordType.TXT || query.class !== RecordClass.IN)
      return next(query);
    const texts = challenges.textsOf(query.name);
    if (texts === undefined) return next(query);
    query.trace?.note("a challenge of ACME is pending");
    const answer = texts.map((text) => TXT.create(query.name, 0, { strings: [Buffer.from(text)] }));
    return query.reply({ authoritative: true, answer });
  };

  start(): void {
    const { changingNames, feed } = this.#site;
    this.#endWatch = this.#state.challenges.watch((names) => {
      feed.publish(this.#state.challenges.challenges);
      // Caches may hold a denial of the name, or the previous challenge.
      changingNames.tell(names);
      return feed.taken();
    });
  }

  stop(): void {
    this.#endWatch?.();
  }
}
