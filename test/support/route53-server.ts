/** Route 53 as far as listing goes, with what hands out credentials in a cluster: STS for web identities, and the agent of EKS pod identities. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RecordSet {
  readonly name: string;
  readonly type: string;
  readonly ttl?: number;
  readonly values?: readonly string[];
  /** Of weighted and other sets that have a name and type in common. */
  readonly identifier?: string;
  readonly weight?: number;
  /** An alias record: it has a target in place of values. */
  readonly alias?: string;
}

export const STATIC_KEY = "AKIDSTATIC";
export const WEB_IDENTITY_KEY = "ASIAWEBIDENTITY";
export const POD_IDENTITY_KEY = "ASIAPODIDENTITY";
export const METADATA_KEY = "ASIAMETADATA";

export class Route53Server {
  /** By id. */
  readonly zones: Map<string, readonly RecordSet[]> = new Map();
  /** Record sets of one page. */
  pageSize = 2;
  /** Keys that may list. */
  keys: ReadonlySet<string> = new Set([STATIC_KEY, WEB_IDENTITY_KEY, POD_IDENTITY_KEY, METADATA_KEY]);
  /** The credentials that the token service issues. */
  webIdentityKey = WEB_IDENTITY_KEY;
  /** The answers to the next requests, in order. */
  readonly faults: (keyof typeof FAULTS)[] = [];
  /** Whether the last page says that the first one is next. */
  isCircle = false;
  /** Milliseconds that its clock is ahead. */
  clockOffset = 0;
  /** The users that listed records, by access key. */
  readonly users: string[] = [];
  /** Requests to list. */
  count = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<Route53Server> {
    const server = new Route53Server();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<undefined> {
    const url = new URL(request.url ?? "/", this.url);
    const body = await textOf(request);
    if (url.pathname === "/pod-identity") {
      const isKnown = request.headers.authorization === "pod-token";
      return end(response, isKnown ? 200 : 401, JSON.stringify(credentials(POD_IDENTITY_KEY, "Token")));
    }
    if (url.pathname.startsWith("/latest/")) return answerMetadata(url.pathname, request, response);
    if (url.pathname === "/") return this.#assumeRole(new URLSearchParams(body), response);
    const id = /^\/2013-04-01\/hostedzone\/([^/]+)\/rrset$/.exec(url.pathname)?.[1];
    if (id === undefined) return end(response, 404, "");
    this.#list(id, url.searchParams, request, response);
  }

  #assumeRole(parameters: URLSearchParams, response: ServerResponse): undefined {
    if (
      parameters.get("Action") !== "AssumeRoleWithWebIdentity" ||
      parameters.get("WebIdentityToken") !== "jwt"
    )
      return fail(response, 400, "InvalidIdentityToken", "The token is not known");
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = credentials(
      this.webIdentityKey,
      "SessionToken",
    );
    end(
      response,
      200,
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>${AccessKeyId}</AccessKeyId><SecretAccessKey>${SecretAccessKey}</SecretAccessKey>
<SessionToken>${SessionToken}</SessionToken><Expiration>${Expiration}</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/dns/portolan</Arn><AssumedRoleId>id:portolan</AssumedRoleId></AssumedRoleUser>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    );
  }

  #list(
    id: string,
    parameters: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): undefined {
    this.count++;
    const fault = this.faults.shift();
    if (fault !== undefined) {
      const [status, code, message] = FAULTS[fault];
      return fail(response, status, code, message);
    }
    const now = Date.now() + this.clockOffset;
    if (Math.abs(signedAt(request) - now) > TOLERANCE) {
      response.setHeader("date", new Date(now).toUTCString());
      return fail(response, 403, "RequestTimeTooSkewed", "The difference between the clocks is too large.");
    }
    const signature =
      /^AWS4-HMAC-SHA256 Credential=(\w+)\/\d{8}\/us-east-1\/route53\/aws4_request, .*Signature=\w+$/;
    const key = signature.exec(request.headers.authorization ?? "")?.[1] ?? "";
    this.users.push(key);
    const isTemporary = key.startsWith("ASIA");
    if (!this.keys.has(key) || isTemporary !== (request.headers["x-amz-security-token"] === "session"))
      return fail(
        response,
        403,
        "InvalidClientTokenId",
        "The security token included in the request is invalid.",
      );
    const sets = this.zones.get(id);
    if (sets === undefined)
      return fail(response, 404, "NoSuchHostedZone", `No hosted zone found with ID: ${id}`);
    const start = sets.findIndex(
      ({ name, type, identifier }) =>
        name === parameters.get("name") &&
        type === parameters.get("type") &&
        (identifier ?? null) === parameters.get("identifier"),
    );
    const from = Math.max(0, start);
    const next = sets[from + this.pageSize] ?? (this.isCircle ? sets[0] : undefined);
    const identifier =
      next?.identifier === undefined ? "" : `<NextRecordIdentifier>${next.identifier}</NextRecordIdentifier>`;
    const more =
      next === undefined
        ? ""
        : `<NextRecordName>${next.name}</NextRecordName><NextRecordType>${next.type}</NextRecordType>${identifier}`;
    end(
      response,
      200,
      `<?xml version="1.0"?><ListResourceRecordSetsResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/">
<ResourceRecordSets>${sets
        .slice(from, from + this.pageSize)
        .map(setText)
        .join("")}</ResourceRecordSets>
<IsTruncated>${next !== undefined}</IsTruncated>${more}<MaxItems>${this.pageSize}</MaxItems></ListResourceRecordSetsResponse>`,
    );
  }
}

/** The metadata of an instance, version 2: for those alone who have asked for a session before. */
function answerMetadata(path: string, request: IncomingMessage, response: ServerResponse): undefined {
  if (path === "/latest/api/token" && request.method === "PUT") return end(response, 200, "metadata-session");
  if (request.headers["x-aws-ec2-metadata-token"] !== "metadata-session") return end(response, 401, "");
  const role = "/latest/meta-data/iam/security-credentials/";
  if (path === role) return end(response, 200, "dns");
  if (path !== `${role}dns`) return end(response, 404, "");
  const keys = credentials(METADATA_KEY, "Token");
  end(
    response,
    200,
    JSON.stringify({ Code: "Success", Type: "AWS-HMAC", LastUpdated: "2026-01-01T00:00:00Z", ...keys }),
  );
}

/** Milliseconds. */
const TOLERANCE = 300_000;

/** Milliseconds since 1970. */
function signedAt({ headers }: IncomingMessage): number {
  const [, date, hours, minutes, seconds] = /^(\d+)T(..)(..)(..)Z$/.exec(String(headers["x-amz-date"])) ?? [];
  return Date.parse(`${date?.replace(/^(....)(..)(..)$/, "$1-$2-$3")}T${hours}:${minutes}:${seconds}Z`);
}

const FAULTS = {
  throttled: [400, "Throttling", "Rate exceeded"],
  denied: [
    403,
    "AccessDenied",
    "User: arn:aws:iam::1:user/dns is not authorized to perform: route53:ListResourceRecordSets on resource: arn:aws:route53:::hostedzone/Z1",
  ],
} as const;

function setText({ name, type, ttl = 300, values = [], identifier, weight, alias }: RecordSet): string {
  const kind =
    identifier === undefined
      ? ""
      : `<SetIdentifier>${identifier}</SetIdentifier><Weight>${weight ?? 1}</Weight>`;
  const head = `<Name>${name}</Name><Type>${type}</Type>${kind}`;
  if (alias !== undefined)
    return `<ResourceRecordSet>${head}<AliasTarget><HostedZoneId>Z2</HostedZoneId><DNSName>${alias}</DNSName><EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget></ResourceRecordSet>`;
  const records = values.map(
    (value) => `<ResourceRecord><Value>${escapeXml(value)}</Value></ResourceRecord>`,
  );
  return `<ResourceRecordSet>${head}<TTL>${ttl}</TTL><ResourceRecords>${records.join("")}</ResourceRecords></ResourceRecordSet>`;
}

function credentials(AccessKeyId: string, tokenName: "Token" | "SessionToken") {
  return {
    AccessKeyId,
    SecretAccessKey: "secret",
    [tokenName]: "session",
    Expiration: new Date(Date.now() + 3_600_000).toISOString(),
  } as const;
}

function fail(response: ServerResponse, status: number, code: string, message: string): undefined {
  end(
    response,
    status,
    `<ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
  );
}

function end(response: ServerResponse, status: number, body: string): undefined {
  response.writeHead(status, { "content-type": body.startsWith("{") ? "application/json" : "text/xml" });
  response.end(body);
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
