/** Corefiles with an unusual structure. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { readKubeDnsConfig } from "../kube-dns/config-map.ts";
import { downgrade } from "./downgrade.ts";
import { DIRECTIVES, migrated } from "./fixtures/migrated.ts";
import { fromKubeDns } from "./from-kube-dns.ts";
import { sentenceOf } from "./notice.ts";

test("defaults are added to the server block, and not to the snippet that it imports", () => {
  const { text, notices } = migrated(
    `(common) {
    errors
    forward . 192.0.2.1
}
.:53 {
    kubernetes cluster.local
    import common
}
global:53 {
    import common
}
`,
    "1.1.3",
  );
  assert.equal(
    text,
    `(common) {
    errors
    forward . 192.0.2.1 {
        max_concurrent 1000
    }
}
.:53 {
    kubernetes cluster.local
    loop
    ready
    import common
}
global:53 {
    import common
    loop
}
`,
  );
  assert.deepEqual(notices.map(({ plugin, option }) => option ?? plugin).toSorted(), [
    "loop",
    "loop",
    "max_concurrent",
    "ready",
  ]);
});

test("a snippet that is imported several times is reported once", () => {
  const { notices } = migrated(
    "(common) {\n    proxy . 192.0.2.1\n}\n.:53 {\n    import common\n}\nglobal:53 {\n    import common\n}\n",
    undefined,
  );
  assert.deepEqual(
    notices.map(({ severity }) => severity),
    ["removed"],
  );
});

test("a file name after log is removed, with its slash, and the rest of the line stays", () => {
  const { text, notices } = migrated(
    '.:53 {\n    log / stdout "{remote} {name}" {\n        class error\n    }\n}\nexample.org {\n    log example.org stdout\n}\nexample.net {\n    log example.net\n}\n',
    undefined,
    "1.15.0",
    { directives: ["log"] },
  );
  assert.equal(
    text,
    '.:53 {\n    log . "{remote} {name}" {\n        class error\n    }\n}\nexample.org {\n    log example.org\n}\nexample.net {\n    log example.net\n}\n',
  );
  assert.deepEqual(
    notices.map(({ notes, span }) => `${span?.line} ${notes.join()}`),
    [
      `2 'log / stdout "{remote} {name}"' becomes 'log . "{remote} {name}"': CoreDNS reads '/' and 'stdout' as a zone, so it logged no query`,
      "7 'log example.org stdout' becomes 'log example.org': CoreDNS reads 'stdout' as a zone, so it logged no query",
    ],
  );
});

test("federation stays, with a note that CoreDNS refuses it", () => {
  const corefile = ".:53 {\n    federation cluster.local {\n        prod prod.example.org\n    }\n}\n";
  const directives = { directives: ["federation"] };
  const { text, notices } = migrated(corefile, undefined, "1.15.0", directives);
  assert.equal(text, corefile);
  assert.deepEqual(
    notices.map(({ severity, plugin, version }) => [severity, plugin, version]),
    [["removed", "federation", "1.7.0"]],
  );
  assert.deepEqual(migrated(corefile, undefined, "1.6.0", directives).notices, []);
});

test("a change is reported with its last version", () => {
  const corefile =
    ".:53 {\n    kubernetes cluster.local {\n        upstream\n        resyncperiod 5m\n    }\n}\n";
  for (const [from, to, expected] of [
    [undefined, "1.15.0", ["upstream removed 1.7.0", "resyncperiod removed 1.7.0"]],
    // Already removed in the old version; still reported.
    ["1.8.0", "1.15.0", ["upstream removed 1.7.0", "resyncperiod removed 1.7.0"]],
    ["1.3.0", "1.5.0", ["upstream ignored 1.5.0", "resyncperiod deprecated 1.5.0"]],
    ["1.3.0", "1.4.0", ["upstream deprecated 1.4.0"]],
  ] as const) {
    const { notices } = migrated(corefile, from, to);
    assert.deepEqual(
      notices
        .filter(({ severity }) => severity !== "newdefault")
        .map(({ option, severity, version }) => `${option} ${severity} ${version}`),
      expected,
    );
  }
});

test("several lines of transfer become one directive", () => {
  const { text } = migrated(
    "example.org {\n    file db {\n        transfer to *\n        transfer to 192.0.2.1\n    }\n}\n",
    undefined,
  );
  assert.equal(
    text,
    "example.org {\n    file db {\n    }\n    transfer example.org {\n        to *\n        to 192.0.2.1\n    }\n}\n",
  );
});

test("several zones go over gRPC, and their exceptions go where they went before", () => {
  const { text } = migrated(
    `.:53 {
    proxy a.example 192.0.2.1:8053 {
        protocol grpc insecure
        except x.a.example
    }
    proxy b.a.example 192.0.2.2:8053 {
        protocol grpc insecure
        except y.b.a.example
    }
    proxy . 192.0.2.3
}
`,
    undefined,
  );
  assert.equal(
    text,
    `.:53 {
    grpc b.a.example 192.0.2.2:8053 {
        except y.b.a.example
    }
    grpc a.example 192.0.2.1:8053 {
        except x.a.example
    }
    forward x.a.example 192.0.2.3
    forward . 192.0.2.3 {
        except a.example b.a.example
    }
}
`,
  );
  const back = downgrade(text, {
    file: "Corefile",
    host: memoryHost(),
    to: "1.15.0",
    directives: DIRECTIVES,
  });
  assert.equal(back.text.match(/grpc /g)?.length, 1);
  assert.match(back.notices.map(({ notes }) => notes.join()).join(), /takes one of them/);
});

test("unknown plugins are named and stay", () => {
  const { text, notices } = migrated(".:53 {\n    redis\n}\n", undefined);
  assert.match(text, /^ {4}redis$/m);
  assert.deepEqual(
    notices.map((notice) => sentenceOf(notice)),
    ['Plugin "redis" is not known in 1.15.0.'],
  );
});

test("a stub domain without servers is left out", () => {
  const config = readKubeDnsConfig({ stubDomains: '{"a.example":[],"b.example":["192.0.2.1"]}' });
  const { text, notices } = fromKubeDns(config, { domain: "cluster.local" });
  assert.doesNotMatch(text, /a\.example/);
  assert.match(text, /^b\.example:53 \{$/m);
  assert.match(notices[0]?.notes.join() ?? "", /a\.example has no server/);
});
