/**
 * A socket that replies leave through, and how IPv4 is to treat them on their way. The kernel numbers each datagram that routers may cut into fragments, and each
 * that it may cut itself later on. For a client that it has sent nothing in the last milliseconds, it draws the number by lot, and looks up the client in a
 * table that is mostly not in the processor's cache: 1.24 instead of 0.77 us for a datagram over the loopback interface, where there are thousands of clients.
 * What must not be cut has the number 0 (RFC 6864 section 4.1).
 *
 * On the wire, little changes: unless it is told otherwise (`IP_PMTUDISC_WANT`, ip(7)), the kernel has routers cut nothing that fits the path as far
 * as it knows that. What does not fit it cuts itself, and must go on to do so, or large replies would not arrive. So only datagrams are kept whole that
 * paths take everywhere. One that takes less than 540 octets is the exception: there, the kernel used to leave these to the routers.
 */
import { Linux } from "./layouts.ts";
import { type Libc, setSocketNumber, socketNumber } from "./libc.ts";

/** Octets of a datagram. Networks that carry IPv4 take packets of 576, and the kernel believes in none that take less than 552 (`ip_rt_min_pmtu`). */
const SMALL = 512;
/**
 * Calls with small datagrams until these are kept whole again. To turn from one way to the other and back takes 1 us, which is spared with two datagrams
 * to clients that are many, and only with a hundred to one client.
 */
const CALLS_OF_REST = 4;

export class WayOut {
  readonly fd: number;
  readonly #libc: Libc;
  readonly #mayKeepWhole: boolean;
  #keepsWhole = false;
  #rest = 0;

  /** @param takesIpv4 whether datagrams of IPv4 leave through it: those of IPv6 have no number */
  constructor(libc: Libc, fd: number, takesIpv4: boolean) {
    this.#libc = libc;
    this.fd = fd;
    // Where the machine is set up so that routers may cut everything (`ip_no_pmtu_disc`), it stays so.
    this.#mayKeepWhole =
      takesIpv4 && socketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER) === Linux.IP_PMTUDISC_WANT;
  }

  /** Datagrams are about to leave, of which the longest has so many octets. */
  prepare(longest: number): void {
    if (longest > SMALL) this.letCut();
    else if (this.#mayKeepWhole && !this.#keepsWhole && this.#rest-- <= 0)
      this.#keepsWhole = this.#discover(Linux.IP_PMTUDISC_DO);
  }

  /** @returns whether it makes a difference: datagrams were kept whole, and are cut from now on where they have to be */
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
