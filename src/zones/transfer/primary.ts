/** The servers that a zone is transferred from. */
import type { UpstreamAddress } from "../../upstream/config/address.ts";

export interface Primary {
  readonly address: UpstreamAddress;
  /** For people: `192.0.2.1:53`, `tls://192.0.2.1:853`. */
  readonly text: string;
  /** Over TLS (RFC 9103). */
  readonly isEncrypted: boolean;
  /** The name that its certificate must match, if not its address. */
  readonly serverName: string | undefined;
}
