import type { Handler } from "../../plugin/index.ts";

/**
 * Lowers the UDP size of queries to `size` octets, for later plugins and for the reply. An internal lookup has the
 * lower size for later plugins, too, but does not affect the reply to the client.
 */
export function limitUdpSize(size: number): Handler {
  return (query, next) => {
    const edns = query.udpSize > size ? query.edns : undefined;
    if (edns === undefined) return next(query);
    const { root } = query;
    if (query.depth === 0) root.replyLimit = Math.min(root.replyLimit, size);
    query.trace?.note(`lowered the advertised size of ${edns.udpSize} octets to ${size}`);
    return next(query.derive({ edns: { ...edns, udpSize: size } }));
  };
}
