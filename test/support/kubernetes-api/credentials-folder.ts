/** A folder of certificates, tokens and kubeconfig files, with an authority behind it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterAccess } from "../../../src/kubernetes/api/access/access.ts";
import { parseKubeconfig } from "../../../src/kubernetes/api/access/kubeconfig.ts";
import { CertificateAuthority, type IssuedCertificate } from "../certificates.ts";

export class CredentialsFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "portolan-credentials-"));
  readonly authority = new CertificateAuthority();
  /** For an API on loopback, which also goes by `api.example`. */
  readonly serverTls: IssuedCertificate = this.authority.issue({
    commonName: "api",
    hosts: ["127.0.0.1", "api.example"],
  });

  constructor() {
    this.write("ca.crt", this.authority.certificate);
  }

  /** @returns the path */
  write(name: string, content: string): string {
    writeFileSync(join(this.path, name), content);
    return join(this.path, name);
  }

  /** The contents of a kubeconfig in this folder. */
  access(
    cluster: Readonly<Record<string, unknown>>,
    user: Readonly<Record<string, unknown>> = {},
  ): ClusterAccess {
    return parseKubeconfig(kubeconfigText(cluster, user), join(this.path, "config"), undefined, process.env);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

/** A kubeconfig with one context, `here`. */
export function kubeconfigText(
  cluster: Readonly<Record<string, unknown>>,
  user: Readonly<Record<string, unknown>>,
): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  });
}
