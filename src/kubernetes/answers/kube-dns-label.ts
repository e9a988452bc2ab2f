/** The labels that kube-dns makes of addresses that have no name (docs/spec/kube-dns.md#record-tree). */

const PRIORITY = 10;
const WEIGHT = 10;
const TTL = 30;

/**
 * The label of an endpoint without hostname, and of a cluster address as the target of SRV records: a hash of the record as Go prints it,
 * in hexadecimal twice.
 * @param address as text
 */
export function kubeDnsLabel(address: string): string {
  const hash = fnv1a(`&{${address} 0 ${PRIORITY} ${WEIGHT}  false ${TTL} 0  }`).toString(16);
  return Buffer.from(hash, "latin1").toString("hex");
}

/** FNV-1a of 32 bits over a text of ASCII. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
