import assert from "node:assert/strict";
import { test } from "node:test";
import { maskReason, maskSecrets } from "./configuration-facts.ts";

for (const [line, shown] of [
  ["    secret NoTQJBP5WyHBaDBZWQ==", "    secret ********"],
  ["    credentials me myself", "    credentials ********"],
  ['        header Authorization "Bearer abc"', "        header Authorization ********"],
  ["\theader x-honeycomb-team abc", "\theader x-honeycomb-team ********"],
  ["  3 |     header Authorization abc", "  3 |     header Authorization ********"],
  ["    header {", "    header {"],
  ["        response set aa", "        response set aa"],
  ["    secretly {", "    secretly {"],
] as const) {
  test(`shows '${line.trim()}' as '${shown.trim()}'`, () => {
    assert.equal(maskSecrets(`.:53 {\n${line}\n}\n`), `.:53 {\n${shown}\n}\n`);
  });
}

for (const [title, text, shown] of [
  ["a key of tsig", 'tsig {\n secret key. "c2Vjcg=="\n}', "tsig {\n secret ********\n}"],
  ["a word over two lines", 'secret key. "c2V\ncjcg=="\nrequire all', "secret ********\n\nrequire all"],
  ["a password", "etcd {\n  credentials root pw\n}", "etcd {\n  credentials ********\n}"],
  ["a commented one", "# secret key. c2Vj", "# secret ********"],
  ["in an excerpt", "  6 |   secret key. c2Vj\n    |   ^^^", "  6 |   secret ********\n    |   ^^^"],
  ["a header for a collector", 'header authorization "Bearer x"', "header authorization ********"],
  ["a user in a URL", "endpoint http://me:pw@10.0.0.1:2379/", "endpoint http://********@10.0.0.1:2379/"],
  [
    "a key alone before the host",
    "trace zipkin https://pw@in.example/",
    "trace zipkin https://********@in.example/",
  ],
  [
    "a key behind a URL",
    "trace otlp https://in.example/v1?a=b&api-key=pw#c {",
    "trace otlp https://in.example/v1?a=b&api-key=********#c {",
  ],
  ["a remark with a colon", "# the password: pw", "# the password ********"],
  ["a remark with a sign", "# API_TOKEN=pw", "# API_TOKEN ********"],
  ["in capitals", "SECRET a b", "SECRET ********"],
] as const) {
  test(`masks ${title}`, () => {
    assert.equal(maskSecrets(text), shown);
    for (const word of ["c2V", "cjcg", "pw", "Bearer"]) assert.ok(!maskSecrets(text).includes(word));
  });
}

test("leaves everything else as it is", () => {
  const text =
    '.:53 {\n    header {\n        response set ra\n    }\n    forward . tls://9.9.9.9 {\n        tls_servername dns.example\n    }\n    rewrite name suffix .a@b. .c?d=e.\n    token_file /etc/token\n    # a "quote\n}\n';
  assert.equal(maskSecrets(text), text);
});

for (const [message, line, shown] of [
  [
    "Wrong argument count or unexpected line ending after 'pw'",
    "aws_access_key id key pw",
    "Wrong argument count or unexpected line ending after '********'",
  ],
  [
    'not an IP address: "u:pw@1.2.3.4"',
    "forward . https://u:pw@1.2.3.4/",
    'not an IP address: "********@1.2.3.4"',
  ],
  [
    "'http://h:1/?key=pw' is no URL",
    "trace zipkin http://h:1/?key=pw",
    "'http://h:1/?key=********' is no URL",
  ],
  ["'credentials' needs 'pw'", "credentials pw", "'credentials' needs '********'"],
  ["unknown property 'reload'", "reload a@b", "unknown property 'reload'"],
] as const)
  test(`says of '${line}': ${shown}`, () => {
    const reason = maskReason(
      `Corefile:3:5: error: ${message}\n  3 |     ${line}\n    |     ^^^\n  help: expected more`,
    );
    assert.equal(reason.split("\n")[0], `Corefile:3:5: error: ${shown}`);
    assert.ok(!reason.includes("pw"), reason);
  });
