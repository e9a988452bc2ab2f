/** Files that all servers and load generators of a run share: the cluster's Services in several forms, and the queries. */
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../test/support/certificates.ts";
import { CLUSTER_SERVICES, CLUSTER_TTL, CLUSTER_ZONE, type ClusterService } from "./names.ts";
import type { Phase, Workload } from "./workloads.ts";

export interface ClusterFiles {
  /** A folder of Kubernetes manifests. */
  readonly manifests: string;
  /** The same names as a hosts file. */
  readonly hosts: string;
  /** And as a zone in master file format. */
  readonly zoneFile: string;
}

export function writeClusterFiles(folder: string): ClusterFiles {
  const manifests = join(folder, "manifests");
  mkdirSync(manifests, { recursive: true });
  for (const [namespace, services] of Map.groupBy(CLUSTER_SERVICES, (service) => service.namespace))
    writeFileSync(join(manifests, `${namespace}.yaml`), services.map(serviceManifest).join("---\n"));
  const hosts = join(folder, "hosts");
  writeFileSync(hosts, CLUSTER_SERVICES.map(({ address, domain }) => `${address} ${domain}\n`).join(""));
  const zoneFile = join(folder, "zone");
  writeFileSync(zoneFile, [...ZONE_HEAD, ...CLUSTER_SERVICES.map(zoneLine), ""].join("\n"));
  return { manifests, hosts, zoneFile };
}

const ZONE_HEAD = [
  `$ORIGIN ${CLUSTER_ZONE}.`,
  `$TTL ${CLUSTER_TTL}`,
  "@ IN SOA ns.dns hostmaster 1 7200 1800 86400 5",
  "@ IN NS ns.dns",
  "ns.dns IN A 10.96.0.10",
];

function zoneLine({ domain, address }: ClusterService): string {
  return `${domain}. IN A ${address}`;
}

function serviceManifest({ name, namespace, address }: ClusterService): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  clusterIP: ${address}
  ports:
    - name: http
      port: 80
`;
}

/** For the encrypted listeners of all servers: ECDSA P-256. */
export function writeCertificate(folder: string): CertificateFiles {
  const issuer = new CertificateAuthority();
  const issued = issuer.issue({ commonName: "bench", hosts: ["127.0.0.1"] });
  const [certificate, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const authority = join(folder, "authority.pem");
  writeFileSync(authority, issuer.certificate);
  writeFileSync(certificate, issued.certificate);
  writeFileSync(key, issued.key);
  return { certificate, key, authority };
}

/** In PEM, by their paths. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  /** The authority that issued the certificate. */
  readonly authority: string;
}

export interface QueryFile {
  readonly path: string;
  readonly lines: number;
}

export type QueryFiles = Readonly<Record<Phase, QueryFile>>;

/** Queries per second that a file must last for, where none may come twice. */
const FASTEST = { "warm-up": 200_000, capacity: 200_000, "open-loop": 100_000 } as const;

export interface PhaseSeconds {
  readonly warmUp: number;
  readonly measured: number;
}

export function writeQueryFiles(folder: string, workload: Workload, seconds: PhaseSeconds): QueryFiles {
  const write = (phase: Phase, count: number): QueryFile =>
    writeLines(join(folder, `${workload.name}.${phase}`), workload.queries(phase, count));
  return {
    fill: write("fill", 0),
    "warm-up": write("warm-up", FASTEST["warm-up"] * seconds.warmUp),
    capacity: write("capacity", FASTEST.capacity * seconds.measured),
    // The generator of this load warms itself up for up to a second more.
    "open-loop": write("open-loop", FASTEST["open-loop"] * (seconds.measured + 1)),
  };
}

const CHUNK_LINES = 10_000;

function writeLines(path: string, lines: Iterable<string>): QueryFile {
  const file = openSync(path, "w");
  let count = 0;
  let chunk: string[] = [];
  const flush = (): void => {
    if (chunk.length > 0) writeSync(file, `${chunk.join("\n")}\n`);
    chunk = [];
  };
  try {
    for (const line of lines) {
      chunk.push(line);
      count++;
      if (chunk.length === CHUNK_LINES) flush();
    }
    flush();
  } finally {
    closeSync(file);
  }
  return { path, lines: count };
}
