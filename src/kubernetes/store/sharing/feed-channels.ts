/** One feed for several stores: each has a channel of its own, under a name that is the same at both ends. */
import type { Feed } from "../../../plugin/contract/site.ts";

interface ChannelMessage {
  readonly channel: string;
  readonly message: unknown;
}

/** Splits a feed. To be called once for it, with the same names in leader and followers. */
export function feedChannels<Name extends string>(
  feed: Feed,
  names: readonly Name[],
): { readonly [K in Name]: Feed } {
  const snapshots = new Map<string, () => Iterable<unknown>>();
  const listeners = new Map<string, (message: unknown) => Promise<void> | void>();
  if (feed.role === "leader") {
    feed.provide(function* () {
      for (const [channel, snapshot] of snapshots)
        for (const message of snapshot())
          yield message === undefined ? undefined : ({ channel, message } satisfies ChannelMessage);
    });
  } else {
    feed.receive((received) => {
      // The other end of the same feed is always this function.
      const { channel, message } = received as ChannelMessage;
      return listeners.get(channel)?.(message);
    });
  }
  const channels = names.map((channel): [Name, Feed] => [
    channel,
    {
      role: feed.role,
      publish: (message) => feed.publish({ channel, message } satisfies ChannelMessage),
      taken: () => feed.taken(),
      provide: (snapshot) => void snapshots.set(channel, snapshot),
      receive: (listener) => void listeners.set(channel, listener),
      ask: () => Promise.reject(new Error("stores have no questions")),
      answer: () => undefined,
    },
  ]);
  // Each of the names is among the keys.
  return Object.fromEntries(channels) as { readonly [K in Name]: Feed };
}
