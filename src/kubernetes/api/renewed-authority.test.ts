import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { CertificateAuthority } from "../../../test/support/certificates.ts";
import { SourceTest } from "../../../test/support/kubernetes-api/source-test.ts";
import { SystemClock, type Timer } from "../../lib/time/clock.ts";
import { endpointAccess } from "./access/access.ts";

/** Milliseconds. Pauses grow beyond it soon; the requests that ask whether the API is well again come more often. */
const LONG = 3_000;

/** Time passes ten times as fast, and a long pause never ends by itself. */
class EndlessPauses extends SystemClock {
  /** Long pauses that were begun and not cut short. */
  endless = 0;

  override after(delayMs: number, callback: () => void): Timer {
    if (delayMs <= LONG) return super.after(delayMs / 10, callback);
    this.endless++;
    let isOpen = true;
    return {
      cancel: () => {
        if (isOpen) this.endless--;
        isOpen = false;
      },
    };
  }
}

it("a new file of the authority ends the pauses of an outage", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-authority-"));
  const file = join(folder, "ca.crt");
  const issued = (authority: CertificateAuthority) =>
    authority.issue({ commonName: "api", hosts: ["127.0.0.1"] });
  const old = new CertificateAuthority("old authority");
  const tls = issued(old);
  writeFileSync(file, old.certificate);
  const clock = new EndlessPauses();
  try {
    await using test = await SourceTest.start({
      clock,
      simulator: { tls, http2: true },
      access: ({ url }) => {
        const access = endpointAccess([url], undefined, {});
        return { ...access, tls: { ...access.tls, authority: { file } } };
      },
    });
    await test.watching();
    await test.api.close();
    const renewed = new CertificateAuthority("new authority");
    Object.assign(tls, issued(renewed));
    await test.api.open();
    // Each watch has failed so often that it waits for longer than this test.
    await test.until(() => clock.endless === 3);
    test.putService("after");
    writeFileSync(file, renewed.certificate);
    await test.until(() => test.services.join() === "default/after");
    await test.watching();
    assert.equal(clock.endless, 0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
