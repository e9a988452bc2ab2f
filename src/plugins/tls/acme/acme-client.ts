/** An ACME client (RFC 8555) for challenges by DNS, with renewal information (RFC 9773). */

import { list, record, string } from "../../../lib/net/http-client.ts";
import type { Clock } from "../../../plugin/index.ts";
import { AcmeError } from "./acme-error.ts";
import { type AcmeHttp, type AcmeResponse, problemError, refusal } from "./acme-http.ts";
import { type AccountKey, base64url } from "./json-web-signature.ts";

export interface AcmeClientOptions {
  readonly http: AcmeHttp;
  readonly clock: Clock;
  /** URL of the CA's directory. */
  readonly directory: string;
  readonly accountKey: () => Promise<AccountKey>;
  readonly email: string | undefined;
}

export interface OrderOptions {
  readonly domain: string;
  /** Renewal identifier of the certificate to replace. */
  readonly replaces: string | undefined;
  /** DER. */
  readonly signingRequest: Buffer;
  /**
   * Publishes a text at `_acme-challenge` of a name. Resolves when the CA may look it up, with a function that
   * removes it.
   */
  readonly show: (name: string, text: string) => Promise<() => void>;
  readonly signal: AbortSignal;
}

/** The time in which a CA wants a certificate to be renewed. */
export interface RenewalWindow {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  /** Milliseconds before the next request, 0 if the CA does not say. */
  readonly retryAfter: number;
}

/** Bound for nonces that a CA rejects in a row: it may restart, or lose them. */
const MAX_NONCES = 10;
const FIRST_POLL = 500;
const LONGEST_POLL = 15_000;
/** Milliseconds that a CA may take for a step. */
const PATIENCE = 5 * 60_000;

export class AcmeClient {
  readonly #options: AcmeClientOptions;
  #directory: Readonly<Record<string, unknown>> | undefined;
  #account: string | undefined;
  #nonce: string | undefined;

  constructor(options: AcmeClientOptions) {
    this.#options = options;
  }

  /** Obtains a certificate for one name. @returns the chain in PEM, the certificate first @throws AcmeError */
  async obtain(options: OrderOptions): Promise<string> {
    try {
      return await this.#obtain(options);
    } catch (error) {
      // The fault may be gone by the next attempt, so the directory is fetched again, too.
      this.#directory = undefined;
      if (!(error instanceof AcmeError && error.type === "accountDoesNotExist")) throw error;
      this.#account = undefined;
      return this.#obtain(options);
    }
  }

  async #obtain({ domain, replaces, signingRequest, show, signal }: OrderOptions): Promise<string> {
    const { url, order } = await this.#order(domain, replaces, signal);
    for (const authorization of list(order.authorizations))
      await this.#authorize(string(authorization), show, signal);
    await this.#until(url, ["ready"], `order for ${domain}`, signal);
    const csr = base64url(signingRequest);
    const finalized = await this.#post(string(order.finalize), { csr }, signal);
    if (finalized.status >= 400) throw refusal(`order for ${domain}`, finalized);
    const done = await this.#until(url, ["valid"], `order for ${domain}`, signal);
    const certificate = await this.#post(
      string(done.certificate),
      undefined,
      signal,
      "application/pem-certificate-chain",
    );
    if (certificate.status !== 200) throw refusal(`certificate for ${domain}`, certificate);
    return certificate.body;
  }

  /**
   * Requests the time for the renewal of a certificate. @returns nothing if the CA does not support it @throws
   * AcmeError
   */
  async renewalWindow(identifier: string, signal: AbortSignal): Promise<RenewalWindow | undefined> {
    const { renewalInfo } = await this.#urls(signal);
    if (typeof renewalInfo !== "string") return undefined;
    const response = await this.#options.http.request(
      `${renewalInfo}/${identifier}`,
      { method: "GET" },
      signal,
    );
    if (response.status !== 200) throw refusal("renewal information", response);
    const { start, end } = record(response.json.suggestedWindow);
    const window = { start: Date.parse(string(start)), end: Date.parse(string(end)) };
    if (!(window.start < window.end)) throw new AcmeError("renewal information: it contains no window");
    return { ...window, retryAfter: response.retryAfter };
  }

  async #order(
    domain: string,
    replaces: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly url: string; readonly order: Readonly<Record<string, unknown>> }> {
    const { newOrder, renewalInfo } = await this.#urls(signal);
    const identifiers = [{ type: "dns", value: domain }];
    let response = await this.#post(
      string(newOrder),
      { identifiers, ...(replaces !== undefined && renewalInfo !== undefined && { replaces }) },
      signal,
    );
    // The certificate was replaced already, or is from another CA.
    if (response.status >= 400 && response.status < 500 && response.status !== 429 && replaces !== undefined)
      response = await this.#post(string(newOrder), { identifiers }, signal);
    const url = response.header("location");
    if (response.status !== 201 || url === undefined) throw refusal(`order for ${domain}`, response);
    return { url, order: response.json };
  }

  async #authorize(url: string, show: OrderOptions["show"], signal: AbortSignal): Promise<void> {
    const { json, status } = await this.#post(url, undefined, signal);
    if (json.status === "valid") return;
    const domain = string(record(json.identifier).value);
    const challenge = list(json.challenges)
      .map(record)
      .find(({ type }) => type === "dns-01");
    if (challenge === undefined)
      throw new AcmeError(`authorization of ${domain || url}: no challenge by DNS (status ${status})`);
    const key = await this.#options.accountKey();
    const hide = await show(domain, key.challengeText(string(challenge.token)));
    try {
      const response = await this.#post(string(challenge.url), {}, signal);
      if (response.status >= 400) throw refusal(`authorization of ${domain}`, response);
      await this.#until(url, ["valid"], `authorization of ${domain}`, signal);
    } finally {
      hide();
    }
  }

  /** Polls an order or an authorization until it has one of these states. */
  async #until(
    url: string,
    states: readonly string[],
    what: string,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>> {
    const { clock } = this.#options;
    const deadline = clock.now() + PATIENCE;
    for (let wait = FIRST_POLL; ; wait = Math.min(LONGEST_POLL, wait * 2)) {
      const { json, retryAfter, status } = await this.#post(url, undefined, signal);
      const state = string(json.status);
      if (states.includes(state)) return json;
      if (state === "invalid" || state === "deactivated" || state === "expired" || state === "revoked")
        throw problemError(what, problemOf(json) ?? { detail: `it is ${state}` });
      if (clock.now() > deadline)
        throw new AcmeError(`${what}: still "${state}" after five minutes (status ${status})`);
      await pause(clock, Math.min(LONGEST_POLL, Math.max(wait, retryAfter)), signal);
    }
  }

  /**
   * Sends a request for the account, and creates the account if necessary. Retries after rejected nonces and returns
   * other errors.
   */
  async #post(url: string, payload: unknown, signal: AbortSignal, accept?: string): Promise<AcmeResponse> {
    this.#account ??= await this.#openAccount(signal);
    return this.#signed(url, payload, signal, this.#account, accept);
  }

  async #openAccount(signal: AbortSignal): Promise<string> {
    const { newAccount } = await this.#urls(signal);
    const { email } = this.#options;
    const response = await this.#signed(
      string(newAccount),
      { termsOfServiceAgreed: true, ...(email !== undefined && { contact: [`mailto:${email}`] }) },
      signal,
    );
    const url = response.header("location");
    if (response.status >= 400 || url === undefined) throw refusal("account", response);
    return url;
  }

  async #signed(
    url: string,
    payload: unknown,
    signal: AbortSignal,
    account?: string,
    accept?: string,
  ): Promise<AcmeResponse> {
    const { http, accountKey } = this.#options;
    const key = await accountKey();
    for (let attempt = 1; ; attempt++) {
      const nonce = this.#nonce ?? (await this.#newNonce(signal));
      this.#nonce = undefined;
      const response = await http.request(
        url,
        {
          method: "POST",
          body: key.sign({ nonce, url, account }, payload),
          ...(accept !== undefined && { accept }),
        },
        signal,
      );
      this.#nonce = response.header("replay-nonce");
      const error = response.status >= 400 ? refusal(url, response) : undefined;
      if (error?.type === "badNonce" && attempt < MAX_NONCES) continue;
      if (error !== undefined && (error.isTransient || error.type === "accountDoesNotExist")) throw error;
      return response;
    }
  }

  async #newNonce(signal: AbortSignal): Promise<string> {
    const { newNonce } = await this.#urls(signal);
    const response = await this.#options.http.request(string(newNonce), { method: "HEAD" }, signal);
    const nonce = response.header("replay-nonce");
    if (nonce === undefined)
      throw new AcmeError(`${newNonce}: the response has no nonce`, { isTransient: true });
    return nonce;
  }

  async #urls(signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    if (this.#directory !== undefined) return this.#directory;
    const { http, directory } = this.#options;
    const response = await http.request(directory, { method: "GET" }, signal);
    const missing = ["newNonce", "newAccount", "newOrder"].find(
      (name) => typeof response.json[name] !== "string",
    );
    if (response.status !== 200 || missing !== undefined)
      throw new AcmeError(`${directory}: not an ACME directory (status ${response.status})`, {
        isTransient: true,
      });
    this.#directory = response.json;
    return response.json;
  }
}

/** The reason of a failure is in the order, or in the challenge of an authorization. */
function problemOf(json: Readonly<Record<string, unknown>>): unknown {
  if (json.error !== undefined) return json.error;
  return list(json.challenges)
    .map((challenge) => record(challenge).error)
    .find((error) => error !== undefined);
}

/** Waits, or throws when aborted. */
export async function pause(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = clock.after(milliseconds, end);
    signal.addEventListener("abort", end);
  });
  signal.throwIfAborted();
}
