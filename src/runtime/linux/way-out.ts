/**
 * A socket for replies, and how IPv4 treats them on their path. The kernel numbers each datagram that routers, or the
 * kernel itself, may fragment. For a client without recent traffic it draws the number at random, and looks the
 * client up in a table that is mostly not in the processor's cache, which is expensive with thousands of clients.
 * Datagrams that must not be fragmented have the number 0 (RFC 6864 section 4.1).
 *
 * On the wire, little changes: by default (`IP_PMTUDISC_WANT`, ip(7)), the kernel forbids routers to fragment
 * anything that fits the known path MTU. Larger datagrams it fragments itself, and must continue to, or large replies
 * would not arrive. So only datagrams small enough for every path are sent unfragmentable. Paths with an MTU below
 * 540 octets are the exception: there, the kernel left fragmentation to the routers.
 */
import { Linux } from "./layouts.ts";
import { type Libc, setSocketNumber, socketNumber } from "./libc.ts";

/**
 * Octets of a datagram. IPv4 networks carry packets of 576, and the kernel ignores path MTUs below 552
 * (`ip_rt_min_pmtu`).
 */
const SMALL = 512;
/**
 * Calls with small datagrams until these are sent unfragmentable again. Switching the socket option costs a system
 * call, which pays off with few datagrams to many clients, and only with many to one client.
 */
const CALLS_OF_REST = 4;

export class WayOut {
  readonly fd: number;
  readonly #libc: Libc;
  readonly #mayKeepWhole: boolean;
  #keepsWhole = false;
  #rest = 0;

  /** @param takesIpv4 whether IPv4 datagrams are sent through it: IPv6 ones have no number */
  constructor(libc: Libc, fd: number, takesIpv4: boolean) {
    this.#libc = libc;
    this.fd = fd;
    // If the machine is configured to let routers fragment everything (`ip_no_pmtu_disc`), that stays.
    this.#mayKeepWhole =
      takesIpv4 && socketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER) === Linux.IP_PMTUDISC_WANT;
  }

  /** Called before sending datagrams, with the octets of the longest. */
  prepare(longest: number): void {
    if (longest > SMALL) this.letCut();
    else if (this.#mayKeepWhole && !this.#keepsWhole && this.#rest-- <= 0)
      this.#keepsWhole = this.#discover(Linux.IP_PMTUDISC_DO);
  }

  /** @returns whether it changes anything: datagrams were unfragmentable, and may be fragmented from now on */
  letCut(): boolean {
    this.#rest = CALLS_OF_REST;
    if (!this.#keepsWhole) return false;
    this.#keepsWhole = false;
    return this.#discover(Linux.IP_PMTUDISC_WANT);
  }

  #discover(how: number): boolean {
    return setSocketNumber(this.#libc, this.fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER, how) === 0;
  }
}
