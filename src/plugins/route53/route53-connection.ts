/** The part of the AWS SDK in use: an optional package, imported when a Corefile needs it. */
import { createRequire } from "node:module";
import type {
  ListResourceRecordSetsCommand,
  ListResourceRecordSetsResponse,
  ResourceRecordSet,
  Route53Client,
  Route53ClientConfig,
} from "@aws-sdk/client-route-53";
import { reasonOf } from "../../lib/net/http-client.ts";
import type { Clock } from "../../plugin/index.ts";
import { ZoneSourceError } from "../../zones/backed/zone-source.ts";
import { within } from "../../zones/backends/deadline.ts";
import { importOptional } from "../../zones/backends/optional-package.ts";
import { PageCircle } from "../../zones/backends/page-circle.ts";

export interface Route53ConnectionOptions {
  readonly clock: Clock;
  readonly key: { readonly id: string; readonly secret: string } | undefined;
  readonly endpoint: string | undefined;
  readonly profile: string | undefined;
  /** A file of credentials. */
  readonly file: string | undefined;
}

type Sdk = typeof import("@aws-sdk/client-route-53");

const ACTION = "route53:ListResourceRecordSets";
/** Route 53 is one service for all regions; requests are signed for this one. */
const REGION = "us-east-1";
/** An account may send five requests a second, whatever its number of servers. */
const MAX_ATTEMPTS = 6;
/** Record sets per page: the maximum. */
const PAGE = 300;
/** Milliseconds for a connection, for an answer, and for a page with all retries. */
const CONNECT_TIMEOUT = 5_000;
const REQUEST_TIMEOUT = 15_000;
const PAGE_TIME = 40_000;
/** Errors for credentials that have expired: they are loaded again. */
const OUTDATED = [
  "ExpiredToken",
  "ExpiredTokenException",
  "RequestExpired",
  "InvalidClientTokenId",
  "SignatureDoesNotMatch",
];
/** More pages than a hosted zone of 10 million record sets has. */
const MAX_PAGES = 40_000;

export class Route53Connection {
  readonly #options: Route53ConnectionOptions;
  #sdk: Sdk | undefined;
  #client: Route53Client | undefined;

  constructor(options: Route53ConnectionOptions) {
    this.#options = options;
  }

  /** @throws SetupError if the package is missing */
  async open(): Promise<void> {
    const name = "@aws-sdk/client-route-53";
    this.#sdk = await importOptional(name, () => import("@aws-sdk/client-route-53"));
    this.#client = this.#makeClient(this.#sdk);
  }

  #makeClient(sdk: Sdk): Route53Client {
    const { key, endpoint, profile, file } = this.#options;
    return new sdk.Route53Client({
      region: REGION,
      maxAttempts: MAX_ATTEMPTS,
      retryMode: "adaptive",
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT,
        requestTimeout: REQUEST_TIMEOUT,
        throwOnRequestTimeout: true,
      },
      ...(endpoint !== undefined && { endpoint }),
      ...(profile !== undefined && { profile }),
      credentials:
        key === undefined
          ? credentialsOf(file, profile)
          : { accessKeyId: key.id, secretAccessKey: key.secret },
    });
  }

  close(): void {
    this.#client?.destroy();
  }

  /** All record sets, page by page. @throws ZoneSourceError */
  async *recordSets(id: string, signal: AbortSignal): AsyncGenerator<ResourceRecordSet> {
    const { sdk } = this.#opened();
    let start: Pick<
      ListResourceRecordSetsResponse,
      "NextRecordName" | "NextRecordType" | "NextRecordIdentifier"
    > = {};
    const circle = new PageCircle();
    for (let page = 0; page < MAX_PAGES; page++) {
      const command = new sdk.ListResourceRecordSetsCommand({
        HostedZoneId: id,
        MaxItems: PAGE,
        StartRecordName: start.NextRecordName,
        StartRecordType: start.NextRecordType,
        StartRecordIdentifier: start.NextRecordIdentifier,
      });
      const answer = await this.#send(command, id, signal);
      const { ResourceRecordSets: sets, IsTruncated: isTruncated } = answer;
      // The endpoint may be another server: a missing list is an error, not the end of the list.
      if (sets === undefined || isTruncated === undefined)
        throw new ZoneSourceError(`${ACTION} of hosted zone ${id}: the answer is not a list of record sets`);
      yield* sets;
      if (!isTruncated) return;
      const next = [answer.NextRecordName, answer.NextRecordType, answer.NextRecordIdentifier];
      if (circle.closes(JSON.stringify(next)))
        throw new ZoneSourceError(`the record sets of hosted zone ${id} loop`);
      start = answer;
    }
    throw new ZoneSourceError(`hosted zone ${id} has no end`);
  }

  async #send(
    command: ListResourceRecordSetsCommand,
    id: string,
    signal: AbortSignal,
  ): Promise<ListResourceRecordSetsResponse> {
    const { sdk, client } = this.#opened();
    const what = `${ACTION} of hosted zone ${id}`;
    try {
      // The time includes signing in.
      return await within(
        { clock: this.#options.clock, milliseconds: PAGE_TIME, what, signal },
        (abortSignal) => client.send(command, { abortSignal }),
      );
    } catch (error) {
      if (error instanceof ZoneSourceError) throw error;
      if (error instanceof Error && OUTDATED.includes(error.name)) {
        client.destroy();
        this.#client = this.#makeClient(sdk);
      }
      throw refused(what, error);
    }
  }

  #opened(): { readonly sdk: Sdk; readonly client: Route53Client } {
    if (this.#sdk === undefined || this.#client === undefined) throw new ZoneSourceError("not connected yet");
    return { sdk: this.#sdk, client: this.#client };
  }
}

interface CredentialModule {
  defaultProvider(init: {
    readonly filepath?: string;
    readonly profile?: string | undefined;
    readonly ignoreCache: boolean;
  }): AwsCredentials;
}
type AwsCredentials = NonNullable<Extract<Route53ClientConfig["credentials"], (...args: never) => unknown>>;

/**
 * The SDK's own credential provider, which reloads files on request: key rotation replaces them. Found wherever the
 * package of the SDK is installed.
 */
function credentialsOf(filepath: string | undefined, profile: string | undefined): AwsCredentials {
  const require = createRequire(import.meta.resolve("@aws-sdk/client-route-53"));
  const module = require("@aws-sdk/credential-provider-node") as CredentialModule;
  return module.defaultProvider({ ...(filepath !== undefined && { filepath }), profile, ignoreCache: true });
}

/** @param what the operation, for the message about a missing permission */
function refused(what: string, error: unknown): ZoneSourceError {
  const name = error instanceof Error ? error.name : "";
  const kind = name === "" || name === "Error" ? "" : `${name}: `;
  return new ZoneSourceError(`${what}: ${kind}${reasonOf(error)}`, {
    isTransient: true,
  });
}
