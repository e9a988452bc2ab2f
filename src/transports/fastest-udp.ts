/** The quickest way to receive UDP that this system has. */
import { NoForeignFunctions } from "../runtime/linux/libc.ts";
import { linuxSockets } from "../runtime/linux/linux-sockets.ts";
import { listenUdp, type UdpListen } from "./udp.ts";
import { listenUdpBatched } from "./udp-batched.ts";

/** As the environment wants it: `PORTOLAN_UDP=dgram` asks for the plain way, to compare with or to fall back to. */
export async function udpOf(environment: NodeJS.ProcessEnv): Promise<UdpListen> {
  return environment.PORTOLAN_UDP === "dgram" ? listenUdp : fastestUdp();
}

/** @param onPlain hears why it is the plain way */
export async function fastestUdp(onPlain?: (reason: string) => void): Promise<UdpListen> {
  const sockets = await linuxSockets();
  if (sockets instanceof NoForeignFunctions) {
    onPlain?.(sockets.message);
    return listenUdp;
  }
  return (target, receiver, options) => listenUdpBatched(sockets, target, receiver, options);
}
