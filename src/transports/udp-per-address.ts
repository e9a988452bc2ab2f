/**
 * A wildcard UDP listener that answers from the address it was asked at. The kernel would choose the source address of a reply
 * by its routes, and a client that asked another address of the machine drops such a reply. So each local address has a socket
 * of its own, which the kernel prefers to the wildcard's; that one takes what comes to addresses not seen yet.
 */
import type { Timer } from "../lib/clock.ts";
import type { Libc } from "../lib/linux/libc.ts";
import { ListenError, type ListenTarget, type MessageReceiver, type Transport } from "./transport.ts";
import type { UdpOptions } from "./udp.ts";
import { type BatchedUdpTransport, listenUdpBatched } from "./udp-batched.ts";
import { setReuseAddress, type UdpSocketOptions } from "./udp-socket.ts";

/** Milliseconds between two looks at the addresses of the machine. */
const LOOK_INTERVAL = 10_000;

/** @throws ListenError */
export async function listenUdpPerAddress(
  libc: Libc,
  target: ListenTarget,
  receiver: MessageReceiver,
  options: UdpOptions,
): Promise<Transport> {
  // Bound before it lets others in: a second server on the port is noticed.
  const wildcard = await listenUdpBatched(libc, target, receiver, options);
  const transport = new PerAddressUdpTransport(libc, wildcard, receiver, options);
  await transport.look();
  return transport;
}

class PerAddressUdpTransport implements Transport {
  readonly name = "udp";
  readonly host: string;
  readonly port: number;
  readonly #libc: Libc;
  readonly #wildcard: BatchedUdpTransport;
  readonly #receiver: MessageReceiver;
  readonly #options: UdpOptions;
  readonly #byAddress = new Map<string, BatchedUdpTransport>();
  readonly #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #shared: boolean;
  #stopped = false;

  constructor(libc: Libc, wildcard: BatchedUdpTransport, receiver: MessageReceiver, options: UdpOptions) {
    this.#libc = libc;
    this.#wildcard = wildcard;
    this.#receiver = receiver;
    this.#options = options;
    this.#shared = options.reusePort ?? false;
    this.host = wildcard.host;
    this.port = wildcard.port;
    this.#timer = options.clock?.every(LOOK_INTERVAL, () => {
      this.#looking = this.#looking.then(() => this.look());
    });
  }

  /** Opens sockets for addresses that are new, and closes those of addresses that are gone. */
  async look(): Promise<void> {
    const wanted = new Set(addressesToBind(this.#options.localAddresses?.() ?? []));
    for (const [address, transport] of this.#byAddress) {
      if (wanted.has(address)) continue;
      this.#byAddress.delete(address);
      await transport.close();
    }
    const missing = [...wanted].filter((address) => !this.#byAddress.has(address));
    if (missing.length === 0 || this.#stopped) return;
    if (this.#shared) {
      for (const address of missing) await this.#open(address, { reusePort: true });
      return;
    }
    setReuseAddress(this.#libc, this.#wildcard.fd, true);
    try {
      for (const address of missing) await this.#open(address, { reuseAddress: true });
    } finally {
      setReuseAddress(this.#libc, this.#wildcard.fd, false);
    }
  }

  share(): boolean {
    this.#shared = this.#all().every((transport) => transport.share());
    return this.#shared;
  }

  pause(): void {
    this.#stopped = true;
    for (const transport of this.#all()) transport.pause();
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
    await Promise.all(this.#all().map((transport) => transport.close()));
  }

  async #open(address: string, how: UdpSocketOptions): Promise<void> {
    const target = { host: address, port: this.port };
    try {
      const options = { ...this.#options, ...how };
      const transport = await listenUdpBatched(this.#libc, target, this.#receiver, options);
      if (how.reuseAddress === true) setReuseAddress(this.#libc, transport.fd, false);
      // The addresses were shared while this one was being bound.
      if (this.#shared) transport.share();
      this.#byAddress.set(address, transport);
    } catch (error) {
      // An address may go while it is being bound (or be tentative still, RFC 4862): the wildcard serves it meanwhile.
      if (!(error instanceof ListenError)) throw error;
    }
  }

  #all(): BatchedUdpTransport[] {
    return [this.#wildcard, ...this.#byAddress.values()];
  }
}

/** Of each family all addresses, where there is more than one; link-local ones are left to the wildcard. */
function addressesToBind(addresses: readonly string[]): string[] {
  const usable = addresses.filter((address) => !/^fe[89ab]/i.test(address) && !address.includes("%"));
  const families = [
    usable.filter((address) => !address.includes(":")),
    usable.filter((address) => address.includes(":")),
  ];
  return families.flatMap((family) => (family.length > 1 ? family : []));
}
