/** The nesting of internal lookups. */
import type { Name } from "../../dns/name.ts";

/**
 * The deepest nesting of internal lookups; CoreDNS's zone engine stops at the same number
 * (docs/spec/coredns-behaviour.md#internal-lookups).
 */
export const MAX_LOOKUP_DEPTH = 8;

export class LookupDepthError extends Error {
  override readonly name = "LookupDepthError";
  readonly target: Name;

  constructor(target: Name) {
    super(`more than ${MAX_LOOKUP_DEPTH} internal lookups inside each other, the last for ${target}`);
    this.target = target;
  }
}
