/** Keys of TSIG that a server block has (`tsig`), for those who sign what they send or who want to know who asks. */
import type { Name } from "../../dns/name.ts";
import type { TsigKey, TsigKeyRing } from "../../dns/tsig/keys.ts";
import { SetupError } from "../contract/define-plugin.ts";
import { type OfferingPlugin, ServiceKey } from "../contract/service.ts";

/** The ring is complete once the plugin has started, which is before those behind it in the chain start. */
export const TSIG_KEYS: ServiceKey<TsigKeyRing> = new ServiceKey("tsig keys");

/**
 * The key of this name, from the start of a plugin behind `tsig` on.
 * @param user what the key is for, as the message says it: "'key' for zone example.org."
 * @throws SetupError where the server block has no such key
 */
export function tsigKeyNamed(name: Name, plugins: readonly OfferingPlugin[], user: string): TsigKey {
  for (const ring of TSIG_KEYS.among(plugins)) {
    const key = ring.get(name);
    if (key !== undefined) return key;
  }
  throw new SetupError(
    `the key ${name} of ${user} is unknown: give it to the plugin tsig of this server block`,
  );
}
