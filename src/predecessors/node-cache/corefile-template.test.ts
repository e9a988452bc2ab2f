import assert from "node:assert/strict";
import { test } from "node:test";
import { readKubeDnsConfig } from "../kube-dns/config-map.ts";
import { CorefileTemplateError, renderCorefile } from "./corefile-template.ts";

const TEMPLATE = `.:53 {
    bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__
    forward . __PILLAR__UPSTREAM__SERVERS__ {
            force_tcp
    }
}
cluster.local:53 {
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
}
`;
const values = { localAddresses: ["169.254.20.10", "10.96.0.10"], clusterDns: "10.96.0.11", port: 53 };

test("without a ConfigMap the system's name servers are queried over TCP", () => {
  const { text, warnings } = renderCorefile(TEMPLATE, { ...values, config: readKubeDnsConfig({}) });
  assert.deepEqual(warnings, []);
  assert.match(text, /^ {4}bind 169\.254\.20\.10 10\.96\.0\.10 $/m);
  assert.match(text, /forward \. \/etc\/resolv\.conf \{\n {12}force_tcp/);
  assert.match(text, /forward \. 10\.96\.0\.11 \{\n {12}force_tcp/);
});

test("custom upstreams are queried over UDP, and each stub domain has a block", () => {
  const config = readKubeDnsConfig({
    upstreamNameservers: '["1.1.1.1","[2001:db8::1]:5353"]',
    stubDomains: '{"acme.local":["1.2.3.4:5300","2001:db8::2"]}',
  });
  const { text } = renderCorefile(TEMPLATE, { ...values, config });
  assert.match(text, /^ {4}forward \. 1\.1\.1\.1 \[2001:db8::1\]:5353$/m);
  assert.match(
    text,
    /\nacme\.local:53 \{\n {4}errors\n {4}cache 30\n {4}bind [^\n]*\n {4}forward \. 1\.2\.3\.4:5300 2001:db8::2\n\}\n$/,
  );
});

test("in a template with another block the word is replaced, with a warning", () => {
  const config = readKubeDnsConfig({ upstreamNameservers: '["1.1.1.1"]' });
  const { text, warnings } = renderCorefile(". {\n forward . __PILLAR__UPSTREAM__SERVERS__\n}\n", {
    ...values,
    config,
  });
  assert.match(text, /forward \. 1\.1\.1\.1\n/);
  assert.equal(warnings.length, 1);
});

test("a template that makes no valid Corefile is refused", () => {
  const named = readKubeDnsConfig({ stubDomains: '{"acme.local":["ns.acme.example"]}' });
  assert.throws(() => renderCorefile(TEMPLATE, { ...values, config: named }), CorefileTemplateError);
  const none = readKubeDnsConfig({});
  assert.throws(
    () => renderCorefile(TEMPLATE, { ...values, config: none, clusterDns: undefined }),
    /-upstreamsvc/,
  );
});
