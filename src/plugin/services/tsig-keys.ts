/** TSIG keys of a server block (`tsig`), for plugins that sign their messages or authenticate clients. */
import type { Name } from "../../dns/name.ts";
import type { TsigKey, TsigKeyRing } from "../../dns/tsig/keys.ts";
import { SetupError } from "../contract/define-plugin.ts";
import { type OfferingPlugin, ServiceKey } from "../contract/service.ts";

/** The ring is complete once the plugin has started, before the plugins behind it in the chain start. */
export const TSIG_KEYS: ServiceKey<TsigKeyRing> = new ServiceKey("tsig keys");

/**
 * The key of this name. Call it from the start of a plugin behind `tsig` on.
 * @param user the use of the key, for the message: "'key' for zone example.org."
 * @throws SetupError if the server block has no such key
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
