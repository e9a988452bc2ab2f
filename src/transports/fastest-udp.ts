/** The quickest way to receive UDP that this system has. */
import { loadLibc } from "../lib/linux/libc.ts";
import { listenUdp, type UdpListen } from "./udp.ts";
import { listenUdpBatched } from "./udp-batched.ts";
import { listenUdpPerAddress } from "./udp-per-address.ts";

/** As the environment wants it: `PORTOLAN_UDP=dgram` asks for the plain way, to compare with or to fall back to. */
export async function udpOf(environment: NodeJS.ProcessEnv): Promise<UdpListen> {
  return environment.PORTOLAN_UDP === "dgram" ? listenUdp : fastestUdp();
}

export async function fastestUdp(): Promise<UdpListen> {
  const libc = await loadLibc();
  if (libc === undefined) return listenUdp;
  return (target, receiver, options = {}) =>
    target.host === "" && options.localAddresses !== undefined
      ? listenUdpPerAddress(libc, target, receiver, options)
      : listenUdpBatched(libc, target, receiver, options);
}
