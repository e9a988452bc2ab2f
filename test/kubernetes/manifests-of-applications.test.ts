/** Manifests as applications have them: Services and Deployments, without pods. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { Portolan } from "../support/portolan.ts";

const MANIFESTS = `apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: sql, port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db}]}
`;

const start = (option: string): Promise<Portolan> =>
  Portolan.start(
    (port) =>
      `.:${port("dns")} {\n bind 127.0.0.1\n kubernetes cluster.local {\n manifests app.yaml\n ${option}\n }\n}\n`,
    { files: { "app.yaml": MANIFESTS } },
  );

test("the log says why a headless Service has no endpoints, and with which option it has", {
  skip: skipWithout("dig"),
}, async () => {
  {
    await using server = await start("");
    await server.program.waitForOutput(
      /^\[WARNING\] plugin\/kubernetes: manifests: \S*app\.yaml:1: headless service shop\/db has no endpoints: .* of StatefulSet db\. .* option replicas_as_endpoints$/m,
    );
    assert.equal((await dig(server, "db.shop.svc.cluster.local")).status, "NXDOMAIN");
  }
  await using server = await start("replicas_as_endpoints");
  const { answer } = await dig(server, "db.shop.svc.cluster.local");
  assert.equal(answer.length, 2);
  const [first] = (await dig(server, "db-0.db.shop.svc.cluster.local")).answer;
  assert.match(first ?? "", /^db-0\.db\.shop\.svc\.cluster\.local\. 5 IN A 198\.1[89]\.\d+\.\d+$/);
  assert.doesNotMatch(server.program.output, /has no endpoints/);
});
