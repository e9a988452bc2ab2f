/** Corefiles that are put together in unusual ways. */
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

test("what a snippet says is told once, however often it is imported", () => {
  const { notices } = migrated(
    "(common) {\n    proxy . 192.0.2.1\n}\n.:53 {\n    import common\n}\nglobal:53 {\n    import common\n}\n",
    undefined,
  );
  assert.deepEqual(
    notices.map(({ severity }) => severity),
    ["deprecated", "removed"],
  );
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

test("several zones go over gRPC, and what they leave alone goes where it went", () => {
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
    to: "1.14.7",
    directives: DIRECTIVES,
  });
  assert.equal(back.text.match(/grpc /g)?.length, 1);
  assert.match(back.notices.map(({ notes }) => notes.join()).join(), /takes one of them/);
});

test("plugins that nobody knows are named and stay", () => {
  const { text, notices } = migrated(".:53 {\n    redis\n}\n", undefined);
  assert.match(text, /^ {4}redis$/m);
  assert.deepEqual(
    notices.map((notice) => sentenceOf(notice)),
    ['Plugin "redis" is not known in 1.14.7.'],
  );
});

test("a stub domain without servers is left out", () => {
  const config = readKubeDnsConfig({ stubDomains: '{"a.example":[],"b.example":["192.0.2.1"]}' });
  const { text, notices } = fromKubeDns(config, { domain: "cluster.local" });
  assert.doesNotMatch(text, /a\.example/);
  assert.match(text, /^b\.example:53 \{$/m);
  assert.match(notices[0]?.notes.join() ?? "", /a\.example has no server/);
});
