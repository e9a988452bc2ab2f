/** Directives of CoreDNS 1.15.0 that this version has no plugin for: a Corefile that uses one is told so, not "unknown". */
export const unavailableDirectives: ReadonlySet<string> = new Set();
