/** Server blocks with views, as clients see them: who gets which answer, out of which cache, counted under which name. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/index.ts";

const COREFILE = `
example.org:0 {
    bind 127.0.0.1
    metadata
    prometheus 127.0.0.1:0
    view internal {
        expr incidr(client_ip(), '10.0.0.0/8')
    }
    cache 60
    template IN A {
        answer "{{ .Name }} 60 IN A 10.0.0.7"
    }
    template IN TXT {
        answer "{{ .Name }} 60 IN TXT {{ .Meta \`view/name\` }}"
    }
}
example.org:0 {
    bind 127.0.0.1
    prometheus 127.0.0.1:0
    cache 60
    template IN A {
        answer "{{ .Name }} 60 IN A 192.0.2.7"
    }
    template IN TXT {
        answer "{{ .Name }} 60 IN TXT <{{ .Meta \`view/name\` }}>"
    }
}
`;

async function withServer(
  corefile: string,
  use: (server: Awaited<ReturnType<typeof createServer>>) => Promise<void>,
) {
  const server = await createServer({ corefile });
  await using _stopped = server;
  await server.start();
  await use(server);
}

test("clients of two views get their own answers, also out of the cache", () =>
  withServer(COREFILE, async (server) => {
    for (let round = 0; round < 2; round++) {
      for (const [client, address] of [
        ["10.1.2.3", "10.0.0.7"],
        ["198.51.100.1", "192.0.2.7"],
      ] as const) {
        const { answer } = await server.ask({ name: "www.example.org", client });
        assert.deepEqual(answer, [`www.example.org. 60 IN A ${address}`], client);
      }
    }
    const metrics = await server.metrics();
    for (const view of ["internal", ""]) {
      assert.match(metrics, new RegExp(`^coredns_cache_hits_total\\{.*view="${view}".*\\} 1$`, "m"));
      assert.match(metrics, new RegExp(`^coredns_template_matches_total\\{.*view="${view}".*\\} 1$`, "m"));
      assert.match(metrics, new RegExp(`^coredns_dns_requests_total\\{.*view="${view}".*\\} 2$`, "m"));
    }
  }));

test("the name of the view is metadata", () =>
  withServer(COREFILE, async (server) => {
    const texts = await Promise.all(
      ["10.1.2.3", "198.51.100.1"].map((client) =>
        server.ask({ name: "a.example.org", type: "TXT", client }),
      ),
    );
    assert.deepEqual(
      texts.map(({ answer }) => answer.map((record) => record.split("TXT ")[1])),
      [['"internal"'], ['"<>"']],
    );
  }));

test("a query that no view takes goes to the zone above, and at last is refused", () =>
  withServer(
    `sub.example.org:0 {
      bind 127.0.0.1
      view a {
        expr type() == 'A'
      }
      template ANY ANY {
        rcode NXDOMAIN
      }
    }
    example.org:0 {
      bind 127.0.0.1
      view b {
        expr type() in ['A', 'MX']
      }
      template ANY ANY
    }`,
    async (server) => {
      const rcodes = await Promise.all(
        ["A", "MX", "TXT"].map(async (type) => (await server.ask({ name: "x.sub.example.org", type })).rcode),
      );
      assert.deepEqual(rcodes, [3, 0, 5]);
    },
  ));

test("a second block without a view on the same key is refused, in any order of the views", async () => {
  const plain = "example.org:0 {\n bind 127.0.0.1\n whoami\n}\n";
  const viewed = "example.org:0 {\n bind 127.0.0.1\n view a\n whoami\n}\n";
  for (const [corefile, starts] of [
    [viewed + plain, true],
    [viewed + viewed + plain, true],
    [plain + viewed, true],
    [plain + viewed + plain, false],
  ] as const) {
    if (!starts) {
      await assert.rejects(createServer({ corefile }), { name: "ConfigurationError" }, corefile);
      continue;
    }
    await using server = await createServer({ corefile });
    await server.start();
  }
});

test("a view takes the pods of a namespace, also for names outside of the cluster", async () => {
  const folder = await mkdtemp(join(tmpdir(), "portolan-views-"));
  try {
    const pods = [
      ["shop", "a", "10.244.1.1"],
      ["bank", "b", "10.244.1.2"],
    ].map(([namespace, name, ip]) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { namespace, name },
        spec: { containers: [] },
        status: { podIP: ip, podIPs: [{ ip }], phase: "Running" },
      }),
    );
    await writeFile(join(folder, "pods.yaml"), pods.join("\n---\n"));
    const block = (view: string, text: string) => `.:0 {
      bind 127.0.0.1
      metadata
      ${view}
      kubernetes cluster.local {
        manifests ${folder}
        pods verified
      }
      template IN TXT . {
        answer "{{ .Name }} 60 IN TXT ${text}"
      }
    }`;
    const view = `view shop {
        expr metadata('kubernetes/client-namespace') == 'shop'
      }`;
    await withServer(`${block(view, "tenant")}\n${block("", "others")}`, async (server) => {
      for (const [client, text] of [
        ["10.244.1.1", "tenant"],
        ["10.244.1.2", "others"],
        ["10.244.1.3", "others"],
      ] as const) {
        const { answer } = await server.ask({ name: "www.example.com", type: "TXT", client });
        assert.deepEqual(answer, [`www.example.com. 60 IN TXT "${text}"`], client);
      }
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
