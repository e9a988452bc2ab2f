/** Keys of TSIG that a server block has (`tsig`), for those who sign what they send or who want to know who asks. */
import type { TsigKeyRing } from "../dns/tsig/keys.ts";
import { ServiceKey } from "./service.ts";

/** The ring is complete once the plugin has started, which is before those behind it in the chain start. */
export const TSIG_KEYS: ServiceKey<TsigKeyRing> = new ServiceKey("tsig keys");
