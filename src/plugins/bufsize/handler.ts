import type { Handler } from "../../plugin/index.ts";

/**
 * Lowers what queries advertise to `size` octets, for the plugins behind and for the reply. A lookup of the server's own
 * shows the lower size to the plugins behind too, but leaves the reply to the client as it is.
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
