/** The fastest way to receive UDP on this system. */
import { NoForeignFunctions } from "../runtime/linux/libc.ts";
import { linuxSockets } from "../runtime/linux/linux-sockets.ts";
import { listenUdp, type UdpListen } from "./udp.ts";
import { listenUdpBatched } from "./udp-batched.ts";

/** As the environment selects it: `PORTOLAN_UDP=dgram` selects the plain way, for comparison or as a fallback. */
export async function udpOf(environment: NodeJS.ProcessEnv): Promise<UdpListen> {
  return environment.PORTOLAN_UDP === "dgram" ? listenUdp : fastestUdp();
}

/** @param onPlain called with the reason why the plain way is used */
export async function fastestUdp(onPlain?: (reason: string) => void): Promise<UdpListen> {
  const sockets = await linuxSockets();
  if (sockets instanceof NoForeignFunctions) {
    onPlain?.(sockets.message);
    return listenUdp;
  }
  return (target, receiver, options) => listenUdpBatched(sockets, target, receiver, options);
}
